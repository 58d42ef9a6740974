"""Times as people read them."""

from datetime import UTC, datetime


def iso(at: int) -> str:
    """A time in ms since the epoch as ISO 8601 in UTC: 2026-01-31T12:00:00.000Z."""
    moment = datetime.fromtimestamp(at // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at % 1000:03}Z"
