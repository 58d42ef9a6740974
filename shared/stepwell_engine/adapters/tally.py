"""Counting what the adapters of a home do, for its metrics."""

import threading
from collections import Counter
from collections.abc import Mapping

from stepwell_engine.core.outcome import Act, Outcome, Succeeded
from stepwell_engine.ports import Performer


class Tally:
    """Counts by name, from any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def add(self, name: str, count: int = 1) -> None:
        """Count."""
        with self._lock:
            self._counts[name] += count

    def take(self) -> Mapping[str, int]:
        """What was counted since the last call."""
        with self._lock:
            taken, self._counts = self._counts, Counter()
        return taken


class TalliedPerformer:
    """A performer whose attempts are counted: `StepsSucceeded`, `StepsFailed`."""

    def __init__(self, performer: Performer, tally: Tally) -> None:
        self._performer = performer
        self._tally = tally

    def perform(self, act: Act) -> Outcome:
        """Try once."""
        outcome = self._performer.perform(act)
        succeeded = isinstance(outcome, Succeeded)
        self._tally.add("StepsSucceeded" if succeeded else "StepsFailed")
        return outcome
