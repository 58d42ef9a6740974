"""A declared workflow as the engine reads it: an immutable list of steps."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from stepwell_engine.core.run.keys import StepKey, StepKeys


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

    `key` is unique in a definition, and the key of the step's record; that of a compensation is
    `compensate:<key of its step>`. `ordinal` is the number in definition order, children counted
    after their fan-out; a compensation carries that of its step. `payload` None is null: of a
    payload that was left out, an empty object was made.
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
    def by_key(self) -> Mapping[StepKey, Step]:
        """All steps and compensations, each by its key."""
        return {step.key: step for step in self.flat} | dict(self.compensations)

    @cached_property
    def compensations(self) -> Mapping[StepKey, Step]:
        """The compensations by their keys."""
        found = (step.compensate for step in self.flat)
        return {step.key: step for step in found if step is not None}

    @cached_property
    def keys(self) -> StepKeys:
        """The keys of a run's records, and the ordinals that stand for them in its journal."""
        return StepKeys(
            {step.ordinal: step.key for step in self.flat},
            {step.ordinal: step.key for step in self.compensations.values()},
        )

    def owner(self, key: StepKey) -> int:
        """The index of the top-level step that a step or a compensation is, or belongs to."""
        return self._owners[self.by_key[key].ordinal]

    @cached_property
    def _owners(self) -> tuple[int, ...]:
        return tuple(index for index, top in enumerate(self.steps) for _ in (top, *top.children))
