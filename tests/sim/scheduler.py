"""Simulated time, and the order in which actors run.

Every actor is a greenlet. It runs until it pauses; then the scheduler wakes whoever is next in
time. One seeded random generator decides everything that is left to chance, so that a seed always
gives the same course of events.
"""

import heapq
import textwrap
from collections import deque
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, NoReturn

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]  # it ships no types

from stepwell_engine.core.run.lane import Lane
from stepwell_engine.ports import Delivered, Done, Refused

_LONGEST_WORD = 160  # characters, in the trace
EPOCH = 1_700_000_000_000
SKEW = 900  # a clock is off by at most this, either way, in ms


class Crash(BaseException):
    """The process of an actor died: nothing in it runs any more."""


class Violation(BaseException):
    """A property of DESIGN.md does not hold. `rule` is its number, 0 for an error nobody caught.

    Not an Exception: the engine must not be able to catch it.
    """

    def __init__(self, rule: int, text: str) -> None:
        super().__init__(f"property {rule}: {text}")
        self.rule = rule


def _text(word: object) -> str:
    """A word of the trace; a written or a refusing head by what matters in it."""
    if not isinstance(word, Done | Delivered | Refused):
        return textwrap.shorten(str(word), _LONGEST_WORD)
    verdict = "refused:" if isinstance(word, Refused) else "done:"
    head = word.head
    if head is None:
        return f"{verdict} no run"
    ready, wake, until = (
        f"{at - EPOCH}" if at else str(at)
        for at in (head.ready_at, head.wake_at, head.lease_expires_at)
    )
    return (
        f"{verdict} {head.run_id[-4:]} {head.status} token={head.lease_token} until={until} "
        f"commit_seq={head.commit_seq} inbox_seq={head.inbox_seq} lost={head.lost_leases} "
        f"ready_at={ready} wake_at={wake} inbox={list(head.inbox)} "
        f"overflow={head.overflow_count}/{head.overflow_last} wants={head.wants}"
        f"{' notify' if head.notify_pending else ''}"
    )


class Process:
    """What dies together: a worker and the tasks of its group, a caller, a tick."""

    __slots__ = ("alive", "has_place", "members", "stopped")

    def __init__(self) -> None:
        self.alive = True
        self.stopped = False  # its host was told to stop
        self.has_place = False  # has the place of suspects
        self.members: list[Actor] = []


class Actor:
    """A worker's visit to a run, one task of its group, a caller of the API, or a tick."""

    __slots__ = (
        "before",
        "claimed",
        "forked",
        "gate_expires_at",
        "greenlet",
        "host",
        "isolated",
        "lane",
        "met_newer",
        "name",
        "process",
        "refused",
        "run_id",
        "token",
        "turn",
    )

    def __init__(
        self, name: str, body: Callable[[], None], run_id: str | None, process: Process, hub: Any
    ) -> None:
        self.name = name
        self.run_id = run_id  # of a worker
        self.token = ""
        self.before = ""  # the token it had before
        self.claimed = ""  # the token with which the store has told it that it has the lease
        self.host: object = None  # of a worker, while it is at its run
        self.lane = Lane.HOST
        self.gate_expires_at: int | None = None  # of its place under a concurrency limit
        self.isolated = False  # runs an attempt in a child process
        self.refused = 0  # when its latest call of the store was refused
        self.forked = False  # a task of a group
        self.met_newer = False  # met a run of a format that its host cannot read
        self.turn = 0  # the number of the plan that wakes it; others are out of date
        self.process = process
        process.members.append(self)
        self.greenlet = greenlet(body, hub)


Task = Actor | Callable[[], None]


class Scheduler:
    """Runs tasks in the order of their times; ties go to the one that was planned first."""

    def __init__(self, seed: int, keep: int) -> None:
        """`keep` is how many lines of the trace are kept."""
        self.random = Random(seed)
        self.now = EPOCH
        self.events = 0
        self.current: Actor | None = None
        self.trace: deque[tuple[int, str, tuple[object, ...]]] = deque(maxlen=keep)
        self._hub = getcurrent()
        self._tasks: list[tuple[int, int, Task]] = []
        self._planned = 0
        self._doomed: list[Actor] = []

    def at(self, when: int, task: Task) -> None:
        """Plan a task; an actor's earlier plan is forgotten."""
        self._planned += 1
        if isinstance(task, Actor):
            task.turn = self._planned
        heapq.heappush(self._tasks, (max(when, self.now), self._planned, task))

    def spawn(
        self, name: str, body: Callable[[], None], when: int, run_id: str | None = None
    ) -> None:
        """Plan a new actor in a process of its own; with `run_id` it is a worker."""
        self.at(when, Actor(name, body, run_id, Process(), self._hub))

    def fork(self, name: str, body: Callable[[], None], when: int) -> None:
        """Plan a new actor in the process of the calling one, for the same run and lease."""
        caller = self.caller()
        actor = Actor(f"{caller.name}{name}", body, caller.run_id, caller.process, self._hub)
        actor.token, actor.forked, actor.lane = caller.token, True, caller.lane
        actor.gate_expires_at = caller.gate_expires_at
        self.at(when, actor)

    def caller(self) -> Actor:
        """The actor that runs now."""
        if self.current is None:
            raise RuntimeError("only an actor can do this")
        return self.current

    def pause(self, ms: int | None) -> None:
        """Let the others run; the calling actor goes on after `ms`, or when it is planned."""
        actor = self.caller()
        if not actor.process.alive:
            raise Crash
        actor.turn = 0
        if ms is not None:
            self.at(self.now + ms, actor)
        self._hub.switch()

    def die(self) -> NoReturn:
        """The process of the calling actor is gone, with all its actors where they are."""
        actor = self.caller()
        actor.process.alive = False
        self._doomed = [other for other in actor.process.members if other is not actor]
        raise Crash

    def kill(self, processes: Iterable[Process]) -> None:
        """These die, with all their actors where they are, when the calling actor rests or ends."""
        for process in processes:
            if process.alive:
                process.alive = False
                self._doomed += process.members

    def note(self, *words: object) -> None:
        """Add to the trace; the words become text only when the trace is read."""
        self.trace.append((self.now, self.current.name if self.current else "world", words))

    def lines(self) -> tuple[str, ...]:
        """The trace as text: time in ms, actor, what happened."""
        return tuple(
            f"{at - EPOCH:>9} {who:<10} {' '.join(_text(word) for word in words)}"
            for at, who, words in self.trace
        )

    def next_at(self) -> int | None:
        """When the next task is due; None if there is none."""
        tasks = self._tasks
        while tasks and _stale(tasks[0]):
            heapq.heappop(tasks)
        return tasks[0][0] if tasks else None

    def run(self, most: int) -> None:
        """Run until nothing is planned any more; Violation after `most` tasks."""
        tasks = self._tasks
        while tasks:
            entry = heapq.heappop(tasks)
            if _stale(entry):
                continue
            self.now, _, task = entry
            self.events += 1
            if self.events > most:
                raise Violation(3, f"the world does not come to rest within {most} events")
            if isinstance(task, Actor):
                self.current = task
                task.greenlet.switch()
                self._kill()
            else:
                self.current = None
                task()

    def _kill(self) -> None:
        while self._doomed:
            self.current = victim = self._doomed.pop(0)
            victim.turn = 0
            if victim.greenlet:  # it had begun, and has not ended
                victim.greenlet.throw(Crash)


def _stale(entry: tuple[int, int, Task]) -> bool:
    """Whether the actor was planned anew since, or died."""
    _, planned, task = entry
    return isinstance(task, Actor) and task.turn != planned
