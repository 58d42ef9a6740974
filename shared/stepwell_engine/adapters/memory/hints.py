"""Hints in memory: a heap ordered by the time at which they are due."""

import heapq
import threading
from typing import NamedTuple

from stepwell_engine.core.values.subject import Subject
from stepwell_engine.core.values.units import EpochMs, Ms
from stepwell_engine.limits import MAX_HINT_DELAY
from stepwell_engine.ports import Clock


class Hint(NamedTuple):
    """Somebody should look at it from `at` (ms since the epoch) on."""

    at: EpochMs
    subject: Subject
    alone: bool = False


class MemoryDispatcher:
    """The Dispatcher port. Whoever runs the workers takes the hints with `pop_due`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._heap: list[Hint] = []

    def hint(self, subject: Subject, delay: Ms = 0, *, alone: bool = False) -> None:
        """Keep a hint. ValueError for a delay outside 0 to MAX_HINT_DELAY."""
        if not 0 <= delay <= MAX_HINT_DELAY:
            raise ValueError(f"a hint's delay must be 0 to {MAX_HINT_DELAY} ms, not {delay}")
        with self._lock:
            heapq.heappush(self._heap, Hint(self._clock.now() + delay, subject, alone))

    def pop_due(self, now: EpochMs) -> Hint | None:
        """Take the earliest hint with `at` <= now; None if there is none."""
        with self._lock:
            if not self._heap or self._heap[0].at > now:
                return None
            return heapq.heappop(self._heap)

    def next_at(self) -> EpochMs | None:
        """When the earliest hint is due; None if there is none."""
        with self._lock:
            return self._heap[0].at if self._heap else None
