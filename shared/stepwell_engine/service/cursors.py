"""Cursors of lists: where the next page begins, opaque to callers."""

import base64
import json
import re
from typing import Any, Final

from stepwell_engine.errors import Problem

_LARGEST: Final = 2**63 - 1  # what every store's integers hold


def cursor(of: str, place: str | int) -> str:
    """A cursor of the list `of` that stands behind `place`."""
    text = json.dumps([of, place], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def text_place(of: str, given: str | None, form: re.Pattern[str]) -> str | None:
    """The place of a cursor made of text of this form. Problem `invalid_request` for others."""
    found = _place(of, given)
    if found is None or (isinstance(found, str) and form.fullmatch(found)):
        return found
    raise foreign()


def number_place(of: str, given: str | None) -> int | None:
    """The place of a cursor made of a number. Problem `invalid_request` for others."""
    found = _place(of, given)
    if found is None or (type(found) is int and 0 <= found <= _LARGEST):
        return found
    raise foreign()


def foreign() -> Problem:
    """The refusal of a cursor."""
    return Problem(
        "invalid_request",
        "cursor is not one of this list: send the next_cursor of its previous page, unchanged",
    )


def _place(of: str, given: str | None) -> Any:
    if given is None:
        return None
    try:
        data = base64.b64decode(given + "=" * (-len(given) % 4), altchars=b"-_", validate=True)
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise foreign() from None
    if isinstance(found, list) and len(found) == 2 and found[0] == of and found[1] is not None:
        return found[1]
    raise foreign()
