"""When the tick last saw everything that was due."""

from typing import Protocol

from stepwell_engine.core.values.units import EpochMs


class Ticks(Protocol):
    """One time for a home: the next tick's `since`."""

    def last(self) -> EpochMs | None:
        """When the last tick began that saw everything; None if there was none."""
        ...

    def record(self, began: EpochMs) -> None:
        """A tick that began then has seen everything."""
        ...
