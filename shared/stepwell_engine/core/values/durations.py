"""Durations as people write them: `1h30m`, `PT1H30M`, or a number of seconds."""

import math
import re
from fractions import Fraction

from stepwell_engine.core.values.excerpt import excerpt
from stepwell_engine.limits import DAY, HOUR, MAX_DURATION, MAX_DURATION_TEXT, MINUTE, SECOND

_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_ISO_NUMBER = r"([0-9]+(?:[.,][0-9]+)?)"

_SHORT_UNITS = (7 * DAY, DAY, HOUR, MINUTE, SECOND, 1)
_SHORT = re.compile(
    rf"(?:{_NUMBER}w)?(?:{_NUMBER}d)?(?:{_NUMBER}h)?(?:{_NUMBER}m(?!s))?"
    rf"(?:{_NUMBER}s)?(?:{_NUMBER}ms)?"
)
_ISO_UNITS = _SHORT_UNITS[:-1]
_ISO = re.compile(
    rf"P(?:{_ISO_NUMBER}W)?(?:{_ISO_NUMBER}D)?"
    rf"(?:T(?=[0-9])(?:{_ISO_NUMBER}H)?(?:{_ISO_NUMBER}M)?(?:{_ISO_NUMBER}S)?)?"
)
_ISO_CALENDAR = re.compile(r"P[^T]*[YM]")

_RIGHT = (
    "a duration is text like 500ms, 30s, 15m, 2h, 1d, 1w, 1h30m (large units first, each once) "
    "or PT1H, or a number of seconds"
)


def parse(value: object) -> int:
    """The duration in ms, at least 1 and at most MAX_DURATION; a half is rounded up.

    Text in short form (`1h30m`, fractions allowed), in ISO-8601 without years and months
    (`P1DT2H`), or a number of seconds. ValueError, with what would be right, for the rest.
    """
    total = _from_text(value) if isinstance(value, str) else _from_number(value)
    if total < 1:
        raise ValueError(f"{excerpt(value)} is too short: a duration is at least 1 ms")
    if total > MAX_DURATION:
        raise _too_long(value)
    return int(total + Fraction(1, 2))


def _from_number(seconds: object) -> Fraction:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise ValueError(f"{excerpt(seconds)} is not a duration: {_RIGHT}")
    if isinstance(seconds, float) and math.isnan(seconds):
        raise ValueError(f"NaN is not a duration: {_RIGHT}")
    if seconds > MAX_DURATION:  # infinity, too, has no Fraction
        raise _too_long(seconds)
    if seconds <= 0:
        raise ValueError(f"{excerpt(seconds)} is too short: a duration is at least 1 ms")
    return Fraction(seconds) * SECOND


def _from_text(text: str) -> Fraction:
    if len(text) > MAX_DURATION_TEXT:
        raise ValueError(
            f"{excerpt(text)} is not a duration: it has {len(text)} characters, "
            f"at most {MAX_DURATION_TEXT} are read"
        )
    for pattern, units in ((_SHORT, _SHORT_UNITS), (_ISO, _ISO_UNITS)):
        found = pattern.fullmatch(text)
        if found and any(found.groups()):
            return sum(
                (
                    Fraction(amount.replace(",", ".")) * unit
                    for amount, unit in zip(found.groups(), units, strict=True)
                    if amount
                ),
                Fraction(0),
            )
    if _ISO_CALENDAR.match(text):
        raise ValueError(
            f"{excerpt(text)} has years or months, which have no fixed length: "
            "use weeks, days, hours, minutes and seconds (P30D)"
        )
    raise ValueError(f"{excerpt(text)} is not a duration: {_RIGHT}")


def _too_long(value: object) -> ValueError:
    return ValueError(
        f"{excerpt(value)} is too long: a duration is at most {MAX_DURATION // DAY} days"
    )


def in_seconds(ms: int) -> str:
    """A time as seconds with their fraction: `90 s`, `1.5 s`."""
    whole, rest = divmod(ms, 1000)
    fraction = f".{rest:03}".rstrip("0").rstrip(".")
    return f"{whole}{fraction} s"
