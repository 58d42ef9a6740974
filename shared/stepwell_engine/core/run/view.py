"""A run as its reader sees it: a row per step, and how far it is compensated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from stepwell_engine.core.run.keys import StepKey
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import StepStatus

Records = Mapping[StepKey, Record]
"""Everything recorded of a run, by key."""


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step, or a compensation, as a run's detail shows it.

    `place` orders the rows of a run, and stays the same as the run goes on. `max_attempts` is 1
    for what is tried once. `parent` is the key of a child's fan-out. `starts_run`: what it came to
    is a child run. `output` is compact JSON, once it has been fetched.
    """

    place: int
    key: StepKey
    kind: str
    record: Record
    max_attempts: int = 1
    parent: StepKey | None = None
    compensating: bool = False
    starts_run: bool = False
    output: bytes | None = None

    @property
    def child(self) -> str | None:
        """The latest child run that the step started."""
        # While the record is pending that run may not exist yet.
        return None if self.record.status is StepStatus.PENDING else self.record.child


CompensationState = Literal["none", "compensating", "compensated", "failed", "incomplete"]


@dataclass(frozen=True, slots=True)
class Compensation:
    """How far a failed run is compensated; `step` is the key at which it stands."""

    state: CompensationState
    step: StepKey | None = None


class RunView(Protocol):
    """A run with everything recorded of it, at one moment."""

    def rows(self) -> Sequence[StepRow]:
        """The steps, in the order in which they are shown."""
        ...

    def compensation(self) -> Compensation:
        """How far a failed run is compensated."""
        ...

    def reason(self) -> str | None:
        """Why a live run is not moving, in one clause; None for one that has ended."""
        ...
