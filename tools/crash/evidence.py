"""What was seen of the runs from outside, while the host was being killed. Times in ms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class How(StrEnum):
    """What ended a host."""

    KILLED = "killed"
    STOPPED = "stopped"  # SIGTERM: what is in flight ends before
    HURRIED = "hurried"  # two of them
    ITSELF = "ended by itself"

    @property
    def repeats(self) -> bool:
        """Whether what was in flight is executed again."""
        return self is not How.STOPPED

    @property
    def loses(self) -> bool:
        """Whether the runs that it held have lost a worker."""
        return self in (How.KILLED, How.ITSELF)


@dataclass(frozen=True, slots=True)
class Kill:
    """A host was told to end at `at`, or was seen alive then; it was gone at `gone`.

    `live` runs had not ended. `process` is its id, `code` the exit code if it ended by itself.
    """

    at: int
    gone: int
    live: int = 0
    process: int = 0
    how: How = How.KILLED
    code: int | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """The outside world was touched for `effect` (`run:step`); `ended` is None if nobody knows.

    `process` is the id of the one in which a function ran.
    """

    effect: str
    began: int
    ended: int | None = None
    process: int | None = None


@dataclass(frozen=True, slots=True)
class Sighting:
    """A row of a run's detail that an answer showed as finished."""

    run_id: str
    row: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that the checks look at.

    `expected`: how the run of each idempotency key must end. `answers`: the run ids that starts
    with the key were answered with. `runs`: each run's detail at the end, by id. `listed`: the
    ids in the lists of runs. `executions`: of steps that others see (webhooks, functions).
    `messages`: the queue at the end. `poison`: the step that ends its process, by idempotency key.
    `refusals`: from when to when the store refused.
    """

    expected: Mapping[str, str]
    answers: Mapping[str, Sequence[str]]
    runs: Mapping[str, Any]
    listed: Sequence[str]
    executions: Sequence[Execution]
    kills: Sequence[Kill]
    sightings: Sequence[Sighting]
    messages: Sequence[Any]
    poison: Mapping[str, str] = field(default_factory=dict)
    refusals: Sequence[tuple[int, int]] = ()
