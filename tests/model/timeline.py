"""Simulated time with as many workers as there are runs to advance.

Each worker and each attempt in flight is a greenlet. It runs until it waits for time; then the one
that is next in time runs. At the same time deeper runs come first, and attempts that end come
before the worker that waits for them: so a child that ends at the very moment at which its parent
gives it up has ended in time.
"""

import heapq
from collections.abc import Callable
from functools import partial
from typing import Any

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]  # it ships no types

EPOCH = 1_700_000_000_000
ATTEMPT, WORKER = 0, 1  # which comes first at the same time and depth
MOST_TURNS = 10_000

Order = tuple[int, int]


class Endless(Exception):
    """The runs do not come to an end."""


class Timeline:
    """The Clock port, and the scheduler. Made and run by one greenlet, the hub."""

    def __init__(self) -> None:
        self.at = EPOCH
        self.order: Order = (0, WORKER)  # of what runs now
        self._hub = getcurrent()
        self._turns: list[tuple[int, Order, int, Callable[[], object]]] = []
        self._made = 0

    def now(self) -> int:
        """Milliseconds since the epoch."""
        return self.at

    def sleep(self, ms: int) -> None:
        """Let the others go on meanwhile."""
        self.pause(self.at + ms, self.order)

    def pause(self, at: int, order: Order) -> None:
        """The calling greenlet goes on at `at`."""
        self.plan(at, order, getcurrent().switch)
        self.yield_turn()

    def yield_turn(self) -> None:
        """Until somebody switches back."""
        self._hub.switch()

    def plan(self, at: int, order: Order, turn: Callable[[], object]) -> None:
        """Do something at a time."""
        self._made += 1
        heapq.heappush(self._turns, (max(at, self.at), order, self._made, turn))

    def spawn(self, at: int, order: Order, task: Callable[[], None]) -> None:
        """Begin a greenlet at a time."""
        self.plan(at, order, greenlet(task, self._hub).switch)

    def run(self) -> None:
        """Until nothing is planned any more."""
        for _ in range(MOST_TURNS):
            if not self._turns:
                return
            self.at, self.order, _, turn = heapq.heappop(self._turns)
            turn()
        raise Endless


class TaskGroup:
    """The TaskGroup port on greenlets."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._depth = timeline.order[0]
        self._ended = 0
        self._waits = 0
        self._wake: Callable[[], object] | None = None

    def start(self, task: Callable[[], None]) -> None:
        """Begin a task beside those that run."""
        order = (self._depth, ATTEMPT)
        self._timeline.spawn(self._timeline.at, order, partial(self._run, task))

    def wait(self, ms: int | None) -> None:
        """Until a task has ended that no wait has reported yet, at most `ms`."""
        if not self._ended:
            self._wake = partial(self._resume, self._waits, getcurrent())
            if ms is not None:
                self._plan_wake(self._timeline.at + ms)
            self._timeline.yield_turn()
            self._waits += 1  # whatever else was to wake it comes too late
            self._wake = None
        self._ended = max(0, self._ended - 1)

    def close(self) -> None:
        """Every task has ended: an unanswered one would be lost with its outcome."""

    def _run(self, task: Callable[[], None]) -> None:
        task()
        self._ended += 1
        self._plan_wake(self._timeline.at)

    def _plan_wake(self, at: int) -> None:
        if self._wake is not None:
            self._timeline.plan(at, (self._depth, WORKER), self._wake)

    def _resume(self, wait: int, worker: Any) -> None:
        if wait == self._waits:
            worker.switch()


class TaskGroups:
    """The TaskGroups port."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def open(self) -> TaskGroup:
        """A group of the worker that runs now."""
        return TaskGroup(self._timeline)
