"""Times in query strings."""

import re
from datetime import UTC, datetime
from typing import Final

from stepwell_engine.core.values.excerpt import excerpt
from stepwell_engine.errors import Problem

_MS: Final = re.compile(r"[0-9]{1,14}")  # up to the year 5138


def instant(name: str, given: str | None) -> int | None:
    """Milliseconds since the epoch, from as many or from ISO 8601; UTC where no offset is given.

    Problem `invalid_request` for anything else; `name` is the parameter's.
    """
    if given is None:
        return None
    if _MS.fullmatch(given):
        return int(given)
    try:
        moment = datetime.fromisoformat(given)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        raise _refused(name, given) from None
    ms = (since.days * 86_400 + since.seconds) * 1_000 + since.microseconds // 1_000
    if ms < 0:
        raise _refused(name, given)
    return ms


def _refused(name: str, given: str) -> Problem:
    return Problem(
        "invalid_request",
        f"?{name} must be a time since 1970 as ISO 8601, like 2026-01-31T12:00:00Z, or as "
        f"milliseconds since the epoch, not {excerpt(given)}",
    )
