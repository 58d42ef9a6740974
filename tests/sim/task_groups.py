"""The Crews port: the tasks of a worker's crew are actors of its process."""

from collections.abc import Callable
from functools import partial

from tests.sim.ports import Links
from tests.sim.scheduler import Actor, Crash, Violation


class SimTaskGroup:
    """One worker's crew. Its tasks interleave with everything else; a crash ends them all."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._scheduler = links.scheduler
        self._started = 0
        self._running = 0
        self._untold = 0  # tasks that have ended and that no wait has told of
        self._waiting: Actor | None = None

    def start(self, task: Callable[[], None]) -> None:
        """Plan the task."""
        caller = self._scheduler.caller()
        self._links.checks.begins(caller.run_id or "", caller.token)
        self._started += 1
        self._running += 1
        when = self._scheduler.now + self._links.latency()
        self._scheduler.fork(f".{self._started}", partial(self._run, task), when)

    def wait(self, ms: int | None) -> None:
        """Until a task has ended, at most `ms`."""
        if not self._untold:
            if ms is None and not self._running:
                raise Violation(0, "a worker waits for its crew, which has nothing to do")
            self._rest(ms)
        if self._untold:
            self._untold -= 1
        caller = self._scheduler.caller()
        self._links.checks.waited(caller.run_id or "", caller.token)

    def close(self) -> None:
        """Wait for every task, unless all died."""
        while self._running and self._scheduler.caller().process.alive:
            self._rest(None)

    def _rest(self, ms: int | None) -> None:
        self._waiting = self._scheduler.caller()
        self._scheduler.pause(ms)
        self._waiting = None

    def _run(self, task: Callable[[], None]) -> None:
        try:
            task()
        except Crash:
            return
        except Exception as error:
            raise Violation(0, f"a task of a crew failed: {error!r}") from error
        self._running -= 1
        self._untold += 1
        if self._waiting is not None:
            self._scheduler.at(self._scheduler.now, self._waiting)


class SimTaskGroups:
    """Crews of one host."""

    def __init__(self, links: Links) -> None:
        self._links = links

    def open(self) -> SimTaskGroup:
        """A crew without a task."""
        return SimTaskGroup(self._links)
