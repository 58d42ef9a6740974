"""Hints: who should look at what, and when."""

from typing import Protocol

from stepwell_engine.core.values.subject import Subject
from stepwell_engine.core.values.units import Ms


class Dispatcher(Protocol):
    """Hints that something is to be looked at. They may be lost, doubled, late, reordered."""

    def hint(self, subject: Subject, delay: Ms = 0, *, alone: bool = False) -> None:
        """Ask that somebody looks at it in `delay` ms (at most MAX_HINT_DELAY).

        `alone`: a worker of the lane ALONE, in a home that has one.
        """
        ...
