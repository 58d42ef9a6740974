"""The TaskGroups port: the tasks of a worker's group are actors of its process."""

from collections.abc import Callable
from functools import partial

from tests.sim.links import Links
from tests.sim.scheduler import Actor, Crash, Violation


class SimTaskGroup:
    """One worker's task group. Its tasks interleave with everything else; a crash ends them all."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._scheduler = links.scheduler
        self._started = 0
        self._running = 0
        self._unreported = 0  # tasks that have ended and that no wait has reported
        self._waiting: Actor | None = None

    def start(self, task: Callable[[], None]) -> None:
        """Plan the task."""
        caller = self._scheduler.caller()
        if not caller.process.stopped:
            self._links.checks.begins(caller.run_id or "", caller.token)
        self._started += 1
        self._running += 1
        when = self._scheduler.now + self._links.latency()
        self._scheduler.fork(f".{self._started}", partial(self._run, task), when)

    def wait(self, ms: int | None) -> None:
        """Until a task has ended, at most `ms`."""
        if not self._unreported:
            if ms is None and not self._running:
                raise Violation(0, "a worker waits for its task group, which has nothing to do")
            self._rest(ms)
        if self._unreported:
            self._unreported -= 1
        caller = self._scheduler.caller()
        if not caller.process.stopped:
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
            raise Violation(0, f"a task of a group failed: {error!r}") from error
        self._running -= 1
        self._unreported += 1
        if self._waiting is not None:
            self._scheduler.at(self._scheduler.now, self._waiting)


class SimTaskGroups:
    """The task groups of one host."""

    def __init__(self, links: Links) -> None:
        self._links = links

    def open(self) -> SimTaskGroup:
        """A group without a task."""
        return SimTaskGroup(self._links)
