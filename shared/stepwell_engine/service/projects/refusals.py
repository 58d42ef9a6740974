"""What a port refuses, as the problem that a user is told."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from stepwell_engine.errors import CannotList, PortRefusal, Problem, QueueNameInUse, TooLong

_CODES: Final[Mapping[type[PortRefusal], str]] = {
    CannotList: "not_supported",
    QueueNameInUse: "unavailable",
    TooLong: "invalid_request",
}


@contextmanager
def as_problems() -> Iterator[None]:
    """Raise a refusal as a Problem. Not QueueNotFound: only the caller knows what it asked for."""
    try:
        yield
    except PortRefusal as refusal:
        code = _CODES.get(type(refusal))
        if code is None:
            raise
        raise Problem(code, str(refusal)) from refusal
