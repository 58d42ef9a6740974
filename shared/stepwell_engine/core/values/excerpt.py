"""A given value, short enough to stand in an error message."""

import math

LONGEST = 60  # characters of text
_LARGEST = 10**20


def excerpt(value: object) -> str:
    """One line of valid Unicode in JSON's words: null, true, 5, "text…", a list, an object."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if abs(value) < _LARGEST else "a number of more than 20 digits"
        case float():
            return "NaN" if math.isnan(value) else repr(value)
        case str():
            return _quoted(value)
        case list() | tuple():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a {type(value).__name__}"


def _quoted(text: str) -> str:
    cut = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    printable = (
        letter if letter.isprintable() else ascii(letter)[1:-1] for letter in cut
    )  # control characters and lone surrogates as escapes
    return '"' + "".join(printable) + '"'
