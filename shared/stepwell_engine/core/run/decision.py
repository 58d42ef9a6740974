"""What a worker is told to do with a run whose lease it holds: values, no behaviour."""

from dataclasses import dataclass
from typing import Any

from stepwell_engine.core.run.attempt import Attempt
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.keys import StepKey
from stepwell_engine.core.run.status import Status
from stepwell_engine.core.values.units import EpochMs, RunId, WorkflowName


@dataclass(frozen=True, slots=True)
class StartAttempts:
    """Start these attempts beside those in flight, then wait for the next outcome.

    At most until `until` (ms since the epoch), when another attempt may be due; None: no bound.
    """

    attempts: tuple[Attempt, ...]
    until: EpochMs | None = None


@dataclass(frozen=True, slots=True)
class StartChild:
    """Start the child run `child` of a step; None: choose its id, record that first.

    The child runs `workflow` with `payload` as its input, one level deeper than its parent.
    """

    step: StepKey
    attempt: int
    workflow: WorkflowName
    payload: Any
    child: RunId | None


@dataclass(frozen=True, slots=True)
class CancelChild:
    """Cancel the child whose time is up, or take its result if it has just ended."""

    step: StepKey
    child: RunId


@dataclass(frozen=True, slots=True)
class Park:
    """Let go until `ready_at`; a decision from absence, void if a new message came.

    `signal`: the one that the run waits for, "" if none.
    """

    status: Status
    ready_at: EpochMs
    signal: str = ""


@dataclass(frozen=True, slots=True)
class ReadOverflow:
    """Read more of the inbox's overflow, then decide again."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The run is over."""

    status: Status


Instruction = StartAttempts | StartChild | CancelChild | ReadOverflow | Park | Finish


@dataclass(frozen=True, slots=True)
class Decision:
    """What is next, the journal that goes with it, and the messages that were consumed for it.

    `consumed` are ids in the head's inbox, `taken` numbers of the overflow.
    The journal is the very one that came in if nothing has to be recorded before.
    `absent`: decided because a message was not there, void if a new one came.
    `hold`: an outcome in hand must not be recorded before the attempts in flight have completed:
    recorded alone, it would decide what happens to them while nobody knows how they end.
    """

    journal: Journal
    next: Instruction
    consumed: tuple[str, ...] = ()
    taken: tuple[int, ...] = ()
    absent: bool = False
    hold: bool = False
