"""What the workers of one process share."""

from dataclasses import dataclass, field
from typing import Protocol

from stepwell_engine.core.values.units import EpochMs, LeaseToken, RunId
from stepwell_engine.ports import Isolation
from stepwell_engine.service.runs.store_refusals import StoreRefusals


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
    begin or claim anything more.
    """

    refusals: StoreRefusals = field(default_factory=StoreRefusals)
    unanswered: dict[RunId, LeaseToken] = field(default_factory=dict)
    isolation: Isolation | None = None
    held: dict[RunId, Held] = field(default_factory=dict)
    abandoned: bool = False
