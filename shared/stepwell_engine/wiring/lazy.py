"""Performers whose libraries load with the first step that needs them."""

import threading
from collections.abc import Callable

from stepwell_engine.core.outcome import Act, Outcome
from stepwell_engine.ports import Performer


class LazyPerformer:
    """Made when its first step comes, by one thread for all."""

    def __init__(self, make: Callable[[], Performer]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: Performer | None = None

    def perform(self, act: Act) -> Outcome:
        """Perform with the performer, made now if it is the first time."""
        if self._made is None:
            with self._lock:
                if self._made is None:
                    self._made = self._make()
        return self._made.perform(act)
