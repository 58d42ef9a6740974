"""How many hints there are, and for what: in a calm world a write may lead to one, no more."""

from collections import Counter
from dataclasses import dataclass, field

from stepwell_engine.core.run.head import Head
from stepwell_engine.limits import TICK
from tests.sim.scheduler import Violation

_MORE = 2  # of a run's whole life: a parent and its child may both hint at it


@dataclass
class HintCounts:
    """Of every run: writes that may need somebody to look, and the hints of workers."""

    calm: bool
    writes: Counter[str] = field(default_factory=Counter)
    hints: Counter[str] = field(default_factory=Counter)

    def wrote(self, run_id: str) -> None:
        """A head was written, by whoever may then hint at it."""
        self.writes[run_id] += 1

    def claimed(self, new: Head) -> None:
        """A worker took the lease: the tick looks again when that is over. Property 3.

        Or within a minute, if the run was not overdue for longer.
        """
        if new.wake_at is not None and new.wake_at + TICK < new.claimed_at:
            raise Violation(3, f"{new.run_id} is claimed, but was to be looked at long ago")

    def sent(self, run_id: str, head: Head | None) -> None:
        """A worker hints at a run. Property 14.

        At one that is held somebody looks again when the lease is over, which is no write.
        """
        if not self.calm or (head is not None and head.lease_token is not None):
            return
        self.hints[run_id] += 1
        if self.hints[run_id] > self.writes[run_id] + _MORE:
            raise Violation(
                14, f"{run_id} has {self.hints[run_id]} hints for {self.writes[run_id]} writes"
            )
