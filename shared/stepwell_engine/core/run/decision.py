"""What a worker is told to do with a run whose lease it holds: values, no behaviour."""

from dataclasses import dataclass

from stepwell_engine.core.run.attempt import Attempt
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.status import Status

ActionKey = tuple[int, bool]
"""A side effect of a run: the ordinal of its step, and whether it undoes that step."""


@dataclass(frozen=True, slots=True)
class StartAttempts:
    """Start these acts beside those in flight, then wait for the next outcome.

    At most until `until` (ms since the epoch), when another act may be due; None: no bound.
    """

    attempts: tuple[Attempt, ...]
    until: int | None = None


@dataclass(frozen=True, slots=True)
class StartChild:
    """Start the child run `child` of a sub-workflow step; None: choose its id, record that first.

    The child is given the step's payload; it is one level deeper than its parent.
    """

    ordinal: int
    attempt: int
    child: str | None


@dataclass(frozen=True, slots=True)
class CancelChild:
    """Cancel the child whose time is up, or take its result if it has just ended."""

    ordinal: int
    child: str


@dataclass(frozen=True, slots=True)
class Park:
    """Let go until `ready_at`; a decision from absence, void if new mail came."""

    status: Status
    ready_at: int


@dataclass(frozen=True, slots=True)
class Finish:
    """The run is over."""

    status: Status


Instruction = StartAttempts | StartChild | CancelChild | Park | Finish


@dataclass(frozen=True, slots=True)
class Decision:
    """What is next, the journal that goes with it, and the mail that was consumed for it.

    The journal is the very one that came in if nothing has to be recorded before.
    `absent`: decided because a message was not there, void if new mail came.
    `hold`: an outcome in hand must not be recorded before the acts in flight have settled.
    """

    journal: Journal
    next: Instruction
    consumed: tuple[str, ...] = ()
    absent: bool = False
    hold: bool = False
