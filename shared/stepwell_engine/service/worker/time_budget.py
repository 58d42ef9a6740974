"""How long a worker may go on with a run."""

from dataclasses import dataclass

from stepwell_engine.core.run.attempt import may_begin
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.values.units import EpochMs, Ms


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """Until when a worker may go on (ms since the epoch), and in which lane; see Advance.run.

    `gate_expires_at`: until when it has a place under a concurrency limit, if the run needs one.
    """

    ends: int
    hard: bool
    lane: Lane = Lane.HOST
    gate_expires_at: EpochMs | None = None

    @property
    def patience(self) -> int | None:
        """Until when a store that refuses is waited for; None: as long as the process lives."""
        return self.ends if self.hard else None

    def allows(self, needed: Ms, now: EpochMs, beside: bool) -> bool:
        """Whether an attempt that may need so long may begin now.

        `beside` others, which keep the worker here anyway.
        """
        if not may_begin(now, needed, self.gate_expires_at):
            return False
        if self.hard:
            return now + needed <= self.ends and now < self.ends
        return beside or now < self.ends
