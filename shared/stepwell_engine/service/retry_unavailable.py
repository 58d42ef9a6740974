"""Calls to a store, made again when the store did not answer."""

from collections.abc import Callable
from typing import Final, TypeVar

from stepwell_engine.errors import Unavailable
from stepwell_engine.ports import Clock

T = TypeVar("T")
_PAUSES: Final = (20, 100)  # ms


def retry_unavailable(clock: Clock, call: Callable[[], T]) -> T:
    """The call's result; Unavailable after three tries. Only for calls that may be repeated."""
    for pause in _PAUSES:
        try:
            return call()
        except Unavailable:
            clock.sleep(pause)
    return call()
