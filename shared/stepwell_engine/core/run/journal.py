"""The journal of a run: what its steps came to, and the times that govern the current one."""

from dataclasses import dataclass

from stepwell_engine.core.run.keys import StepKey
from stepwell_engine.core.run.overflow import NOTHING_TAKEN, Taken
from stepwell_engine.core.run.records import Record


@dataclass(frozen=True, slots=True)
class PageRef:
    """An immutable page: who wrote it, with which write, and for how many finished records.

    One of level 0 holds the records. One above it is an index page: it holds the references to
    pages of the level below.
    """

    token: str
    write: int
    count: int
    level: int = 0

    @property
    def blob(self) -> str:
        """The name of its blob."""
        name = f"{self.token}.{self.write}"
        return f"i.{name}.{self.level}" if self.level else f"p.{name}"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run fails. `step` is the failed step's key, None for a structural failure.

    `stuck`: a compensation failed for good, compensating stopped there.
    """

    message: str
    code: str | None
    step: StepKey | None
    stuck: bool = False


@dataclass(frozen=True, slots=True)
class Journal:
    """`position` is the index of the current step. `records` are finished steps, in the order in
    which they finished, those on `pages` before them; `open` are begun, unfinished ones.
    `attempts` counts every executed attempt of the run. Of `pages` the older ones have the higher
    levels.

    Of the fan-out that the run is in: `children_done` has a bit for each child that succeeded,
    `children_bytes` is how many bytes its join's output has so far. Of a run that compensates:
    `compensating` is the index of the top-level step whose compensation is next, -1 when all are
    compensated (None: nothing was compensated yet), and `children_compensated` has a bit for each
    child of that fan-out that is compensated.

    `taken` are the numbers of the inbox's overflow that are consumed.
    """

    position: int = 0
    attempts: int = 0
    records: tuple[Record, ...] = ()
    open: tuple[Record, ...] = ()
    pages: tuple[PageRef, ...] = ()
    failure: Failure | None = None
    children_done: int = 0
    children_bytes: int = 0
    compensating: int | None = None
    children_compensated: int = 0
    taken: Taken = NOTHING_TAKEN

    @property
    def place(self) -> tuple[int, bool, int | None, int]:
        """Where the run stands: it changes when a step or a compensation is over.

        Not when a sibling in a fan-out is.
        """
        failed = self.failure is not None
        return self.position, failed, self.compensating, self.children_compensated

    def opened(self, key: StepKey) -> Record | None:
        """The open record of a step, or of a compensation."""
        return next((record for record in self.open if record.key == key), None)

    def finished(self, key: StepKey) -> bool:
        """Whether a record is among the finished ones that are not on a page."""
        return any(record.key == key for record in self.records)
