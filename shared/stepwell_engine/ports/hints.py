"""Hints: who should look at what, and when."""

from typing import Protocol


class Dispatcher(Protocol):
    """Hints that a run may go on. They may be lost, doubled, late, reordered."""

    def hint(self, run_id: str, project: str, delay: int = 0) -> None:
        """Ask that somebody advances this run in `delay` ms (at most MAX_HINT_DELAY)."""
        ...
