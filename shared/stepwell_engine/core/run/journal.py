"""The journal of a run: what its steps came to, and the times that govern the current one.

Stored as one compact JSON array inside the head; finished steps that no longer fit move to an
immutable page. Times are stored relative to the run's creation, to keep the head small.
"""

from dataclasses import dataclass

from stepwell_engine.core.run.records import Record


@dataclass(frozen=True, slots=True)
class PageRef:
    """An immutable page of finished records: who wrote it, with which write, how many."""

    token: str
    write: int
    count: int

    @property
    def blob(self) -> str:
        """The name of its blob."""
        return f"p.{self.token}.{self.write}"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run fails. `ordinal` is the failed step's, None for a structural failure.

    `stuck`: a compensation failed for good, the rollback stopped there.
    """

    message: str
    code: str | None
    ordinal: int | None
    stuck: bool = False


@dataclass(frozen=True, slots=True)
class Journal:
    """`position` is the index of the current top-level step. `records` are finished steps, in
    the order in which they finished, those on `pages` before them; `open` are begun, unfinished
    ones. `attempts` counts every executed attempt of the run.

    Of the fan-out that the run is in: `done` has a bit for each child that succeeded, `size` is
    how many bytes its join's output has so far. Of a run that is being unwound: `undo` is the
    index of the top-level step whose compensation is next, -1 when all are undone (None: nothing
    was undone yet), and `undone` has a bit for each child of that fan-out that is undone.
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

    def opened(self, ordinal: int, compensation: bool = False) -> Record | None:
        """The open record of a step, or of its compensation."""
        return next(
            (record for record in self.open if record.action_key == (ordinal, compensation)), None
        )
