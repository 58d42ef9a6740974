"""What was seen of the runs from outside, while the host was being killed. Times in ms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Kill:
    """SIGKILL was sent at `at`; the process was gone at `gone`, `live` runs had not ended."""

    at: int
    gone: int
    live: int = 0


@dataclass(frozen=True, slots=True)
class Execution:
    """The outside world was touched for `effect` (`run:step`); `ended` is None if nobody knows."""

    effect: str
    began: int
    ended: int | None = None


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
    `messages`: the queue at the end.
    """

    expected: Mapping[str, str]
    answers: Mapping[str, Sequence[str]]
    runs: Mapping[str, Any]
    listed: Sequence[str]
    executions: Sequence[Execution]
    kills: Sequence[Kill]
    sightings: Sequence[Sighting]
    messages: Sequence[Any]
