"""Counting what the adapters of a home do, for its metrics."""

import threading
from collections import Counter
from collections.abc import Mapping

from stepwell_engine.core.run.attempt import Attempt, Outcome, Succeeded
from stepwell_engine.ports import StepRunner


class Counters:
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


class CountedStepRunner:
    """A step runner whose attempts are counted: `StepsSucceeded`, `StepsFailed`."""

    def __init__(self, runner: StepRunner, counters: Counters) -> None:
        self._runner = runner
        self._counters = counters

    def run(self, attempt: Attempt) -> Outcome:
        """Try once."""
        outcome = self._runner.run(attempt)
        succeeded = isinstance(outcome, Succeeded)
        self._counters.add("StepsSucceeded" if succeeded else "StepsFailed")
        return outcome
