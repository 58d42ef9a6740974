"""Clocks: those of hosts, which are off and may jump, and the true one; and ids in order."""

from tests.sim.links import Links
from tests.sim.scheduler import SKEW, Scheduler


class HostClock:
    """The clock of one host: off by at most SKEW, and it may jump within that."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._skew = 0
        self.jump()

    def now(self) -> int:
        """Cheap, and no point at which anything can happen.

        Between a look at the clock and the attempt that follows from it there is what the step
        runner adds (see lookups).
        """
        return self._links.scheduler.now + self._skew

    def sleep(self, ms: int) -> None:
        """Pause the calling actor."""
        self._links.call("sleep", None, lambda: None)
        self._links.scheduler.pause(ms)

    def jump(self) -> None:
        """Set the clock to another skew."""
        self._skew = int((2 * self._links.scheduler.random.random() - 1) * SKEW)


class TrueClock:
    """The clock without a skew."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def now(self) -> int:
        """The simulated time."""
        return self._scheduler.now

    def sleep(self, ms: int) -> None:
        """Pause the calling actor."""
        self._scheduler.pause(ms)


class CountedIds:
    """Ids in order."""

    def __init__(self) -> None:
        self._last = 0

    def run_id(self) -> str:
        """As long as a real one."""
        self._last += 1
        return f"run-{self._last:032}"

    def token(self) -> str:
        """As long as a real one."""
        self._last += 1
        return f"lease{self._last:07}"
