"""When a failed attempt is tried again."""

from stepwell_engine import limits


def backoff(attempt: int) -> int:
    """The pause in ms after the `attempt`-th attempt (from 1) of a declared step failed."""
    doubled: int = limits.BACKOFF_INITIAL * limits.BACKOFF_FACTOR ** min(attempt - 1, 32)
    return min(doubled, limits.BACKOFF_CAP)


def pause(attempt: int, retry_after: int | None) -> int:
    """The backoff, or the longer pause that the other side asked for, up to the cap."""
    asked = min(retry_after or 0, limits.BACKOFF_CAP)
    return max(backoff(attempt), asked)
