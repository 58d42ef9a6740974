"""Pages of lists. A cursor is where the next page of one list begins, opaque to callers."""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from stepwell_engine import limits
from stepwell_engine.errors import Problem

T = TypeVar("T")

_LARGEST: Final = 2**63 - 1  # what every store's integers hold
_TEXT: Final = re.compile(r"[A-Za-z0-9_.:-]{1,200}")
_DIGEST_BYTES: Final = 6


def listing(*what: str | int | None) -> str:
    """The name that cursors have for a list: `what` is all that tells it from others, such as its
    kind, whose it is, and its filters.
    """
    return hashlib.blake2s(json.dumps(what).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def page(
    of: str,
    found: Sequence[T],
    limit: int,
    position: Callable[[T], str | int],
    size: Callable[[T], int] = lambda _: 0,
) -> tuple[Sequence[T], str | None]:
    """The first `limit` of what was found, and the cursor of the next page if there is more.

    Fewer, but at least one, where their `size` in bytes would be over MAX_PAGE_BYTES.
    """
    shown, total = 0, 0
    for one in found[:limit]:
        total += size(one)
        if shown and total > limits.MAX_PAGE_BYTES:
            break
        shown += 1
    more = len(found) > shown
    return found[:shown], cursor(of, position(found[shown - 1])) if more else None


def cursor(of: str, position: str | int) -> str:
    """A cursor of the list `of` (see `listing`) that stands behind `place`."""
    return to_url(json.dumps([of, position], separators=(",", ":")))


def any_position(of: str, given: str | None) -> str | int | None:
    """The place of a cursor, None for none. Problem `invalid_request` for garbage."""
    if given is None:
        return None
    try:
        found = json.loads(from_url(given))
    except (ValueError, RecursionError):
        raise foreign() from None
    match found:
        case [_, str() as position] if _TEXT.fullmatch(position):
            pass
        case [_, int() as position] if type(position) is int and 0 <= position <= _LARGEST:
            pass
        case _:
            raise foreign()
    if cursor(of, position) != given:
        raise foreign()
    return position


def text_position(of: str, given: str | None) -> str | None:
    """The place of a cursor made of text. Problem `invalid_request` for others."""
    found = any_position(of, given)
    if isinstance(found, int):
        raise foreign()
    return found


def number_position(of: str, given: str | None) -> int | None:
    """The place of a cursor made of a number. Problem `invalid_request` for others."""
    found = any_position(of, given)
    if isinstance(found, str):
        raise foreign()
    return found


def foreign() -> Problem:
    """The refusal of a cursor."""
    return Problem(
        "invalid_request",
        "cursor is not one of this list: send the next_cursor of its previous page, unchanged, "
        "and the same filters",
    )


def to_url(text: str) -> str:
    """Text as letters, digits, - and _ only."""
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def from_url(given: str) -> str:
    """What `to_url` was given. ValueError for anything that it does not make."""
    padded = given + "=" * (-len(given) % 4)
    text = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    if to_url(text) != given:
        raise ValueError("not the one way to write it")
    return text
