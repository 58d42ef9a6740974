"""How long a worker may go on with a run."""

from dataclasses import dataclass

from stepwell_engine.core.run.attempt import Attempt
from stepwell_engine.core.run.lane import Lane


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """Until when a worker may go on (ms since the epoch), and in which lane; see Advance.run."""

    ends: int
    hard: bool
    lane: Lane = Lane.HOST

    @property
    def patience(self) -> int | None:
        """Until when a store that refuses is waited for; None: as long as the process lives."""
        return self.ends if self.hard else None

    def allows(self, attempt: Attempt, now: int, beside: bool) -> bool:
        """Whether the attempt may begin now; `beside` others, which keep the worker here anyway."""
        if self.hard:
            return now + attempt.timeout <= self.ends and now < self.ends
        return beside or now < self.ends
