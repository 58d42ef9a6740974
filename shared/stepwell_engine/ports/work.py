"""What a worker needs beside the stores: time, ids, step runners, threads."""

from collections.abc import Callable
from typing import Protocol

from stepwell_engine.core.run.attempt import Attempt, Outcome
from stepwell_engine.core.values.subject import Subject
from stepwell_engine.core.values.units import EpochMs, Ms, RunId


class Clock(Protocol):
    """The one clock."""

    def now(self) -> EpochMs:
        """Milliseconds since the epoch."""
        ...

    def sleep(self, ms: Ms) -> None:
        """Pause the calling thread."""
        ...


class LongPollSlots(Protocol):
    """Who may wait for a run to end: a home has only so many threads for requests."""

    def acquire(self) -> bool:
        """Take a slot to wait in; False: none is free."""
        ...

    def may_wait(self) -> bool:
        """Whether one that waits may wait on."""
        ...

    def release(self) -> None:
        """Give the slot back."""
        ...


class Ids(Protocol):
    """The one source of randomness."""

    def run_id(self) -> RunId:
        """A UUIDv7: sorts by time of creation."""
        ...

    def token(self) -> str:
        """A short random text, unique per lease: 12 letters and digits."""
        ...


class StepRunner(Protocol):
    """Does the side effect of one kind of step."""

    def run(self, attempt: Attempt) -> Outcome:
        """Try once, within attempt.timeout ms. Never raises for what the outside world did."""
        ...


class Isolation(Protocol):
    """Runs attempts in a child process, for one worker at a time of those that share a process."""

    def enter(self, run: Subject) -> bool:
        """Take the place, without waiting for it; False: it is another's turn, and this run stands
        in line from now on.
        """
        ...

    def leave(self) -> Subject | None:
        """Give the place back; whose turn it is now."""
        ...

    def forget(self, run: Subject) -> Subject | None:
        """A run does not come, if it stood in line; whose turn it is now, if it was its turn."""
        ...

    def turn(self) -> Subject | None:
        """Whose turn it is, if the place is free and somebody stands in line."""
        ...

    def run(self, attempt: Attempt) -> Outcome:
        """Try once, in a child process of its own; WorkerLost if the attempt ends that process."""
        ...


class TaskGroup(Protocol):
    """Does several things at once for one worker. None of it outlives `close`."""

    def start(self, task: Callable[[], None]) -> None:
        """Begin a task beside those that run. A task raises nothing."""
        ...

    def wait(self, ms: Ms | None) -> None:
        """Until a task has ended that no wait has reported yet, at most `ms` (None: no bound)."""
        ...

    def close(self) -> None:
        """Wait for every task."""
        ...


class TaskGroups(Protocol):
    """Where a worker finds a task group."""

    def open(self) -> TaskGroup:
        """A group that costs nothing until it is given a task."""
        ...
