"""What the workers of one process share."""

from dataclasses import dataclass, field

from stepwell_engine.core.values.units import LeaseToken, RunId
from stepwell_engine.ports import Isolation
from stepwell_engine.service.runs.store_refusals import StoreRefusals


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """What they share. In the lane HOST there is an `isolation` for suspects.

    `unanswered` are tokens of claims that may have succeeded, to be used again.
    """

    refusals: StoreRefusals = field(default_factory=StoreRefusals)
    unanswered: dict[RunId, LeaseToken] = field(default_factory=dict)
    isolation: Isolation | None = None
