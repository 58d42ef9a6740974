"""What the workers of one process share."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from stepwell_engine.core.values.units import EpochMs, LeaseToken, RunId
from stepwell_engine.errors import NewerFormat
from stepwell_engine.ports import Isolation
from stepwell_engine.service.runs.store_refusals import StoreRefusals

log = logging.getLogger(__name__)

MOST_REMEMBERED: Final = 10_000  # runs that it said of that they are newer


class Held(Protocol):
    """A run whose lease a worker of this process holds."""

    def abandon(self, ends: EpochMs) -> bool:
        """Let go of it, from any thread; False if the store does not take that by `ends`."""
        ...


@dataclass(slots=True)
class WorkerProcess:
    """What they share. In the lane HOST there is an `isolation` for suspects.

    `unanswered` are tokens of claims that may have succeeded, to be used again. `held` are the
    runs in progress. `abandoned`: the process ends without waiting for them, so that no worker may
    begin or claim anything more. `count` takes the name of a metric.
    """

    refusals: StoreRefusals = field(default_factory=StoreRefusals)
    unanswered: dict[RunId, LeaseToken] = field(default_factory=dict)
    isolation: Isolation | None = None
    held: dict[RunId, Held] = field(default_factory=dict)
    abandoned: bool = False
    count: Callable[[str], None] = lambda _: None
    newer: set[RunId] = field(default_factory=set)

    def met_newer(self, run_id: RunId, error: NewerFormat) -> None:
        """A worker leaves a run to newer ones: counted each time, said once."""
        self.count("NewerFormats")
        if run_id in self.newer:
            return
        if len(self.newer) >= MOST_REMEMBERED:
            self.newer.clear()
        self.newer.add(run_id)
        log.warning("run %s: %s", run_id, error)
