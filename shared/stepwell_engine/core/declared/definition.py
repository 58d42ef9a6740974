"""A declared workflow as the engine reads it: an immutable list of steps."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any


class Kind(StrEnum):
    """What a step does: each is described in `kinds`."""

    ENQUEUE = "enqueue"
    SQL = "sql"
    WEBHOOK = "webhook"
    FUNCTION = "function"
    SLEEP = "sleep"
    WAIT_FOR_SIGNAL = "wait_for_signal"
    FANOUT = "fanout"
    JOIN = "join"
    SUBWORKFLOW = "subworkflow"


@dataclass(frozen=True, slots=True)
class Step:
    """One step. Times in ms. `secret` is sealed text (see the Secrets port), never plain.

    `ordinal` is the number in definition order, children counted after their fan-out; a
    compensation carries the ordinal of its step. `payload` None is null: of a payload that was
    left out, an empty object was made.
    """

    ordinal: int
    key: str
    kind: Kind
    target: str | None = None
    payload: Any = None
    secret: str | None = None
    max_attempts: int = 3
    timeout: int = 0
    sleep_for: int = 0
    signal: str | None = None
    children: tuple["Step", ...] = ()
    compensate: "Step | None" = None


@dataclass(frozen=True)
class Definition:
    """One immutable version of a declared workflow."""

    project: str
    workflow: str
    version: int
    steps: tuple[Step, ...]

    @cached_property
    def flat(self) -> tuple[Step, ...]:
        """All steps in definition order, so that `flat[ordinal]` is the step."""
        return tuple(step for top in self.steps for step in (top, *top.children))

    @cached_property
    def owners(self) -> tuple[int, ...]:
        """By ordinal, the index of the top-level step that it is, or belongs to."""
        return tuple(index for index, top in enumerate(self.steps) for _ in (top, *top.children))
