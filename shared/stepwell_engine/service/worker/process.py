"""What the workers of one process share."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from stepwell_engine.core.values.units import LeaseToken, RunId
from stepwell_engine.ports import Gate
from stepwell_engine.service.worker.store_refusals import StoreRefusals


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """`unanswered` are tokens of claims that may have succeeded, to be used again."""

    refusals: StoreRefusals = field(default_factory=StoreRefusals)
    unanswered: dict[RunId, LeaseToken] = field(default_factory=dict)
    gate: Gate | None = None
    _at: Counter[RunId] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def at(self, run_id: RunId) -> Iterator[None]:
        """One more worker of the process looks at the run, and may hold it."""
        self._count(run_id, 1)
        try:
            yield
        finally:
            self._count(run_id, -1)

    def has_another_at(self, run_id: RunId) -> bool:
        """Whether another worker of the process than the caller is at the run."""
        return self._at[run_id] > 1

    def _count(self, run_id: RunId, more: int) -> None:
        with self._lock:
            self._at[run_id] += more
            if not self._at[run_id]:
                del self._at[run_id]
