"""Durations, budgets and backoffs, straight from the specification."""

import re
from typing import Any, Final

from tests.model.story import Step

UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
FIRST_BACKOFF: Final = 2_000
LONGEST_BACKOFF: Final = 3_600_000
DEFAULT_ATTEMPTS: Final = 3


def attempts(step: Step) -> int:
    """A step's budget."""
    return int(step.get("max_attempts", DEFAULT_ATTEMPTS))


def backoff(attempt: int) -> int:
    """2 s, 4 s, 8 s, at most an hour."""
    return int(min(FIRST_BACKOFF * 2 ** (attempt - 1), LONGEST_BACKOFF))


def duration(value: Any) -> int:
    """Text of one number and a unit, or a number of seconds."""
    if not isinstance(value, str):
        return int(1000 * value)
    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([a-z]+)", value))
