"""The records of a run: what each step came to, or how far it has come."""

from dataclasses import dataclass

from stepwell_engine.core.run.keys import StepKey
from stepwell_engine.core.run.status import StepStatus
from stepwell_engine.core.values.units import EpochMs, RunId


@dataclass(frozen=True, slots=True)
class Stored:
    """An output too large for the journal: the blob that holds it, its size in bytes."""

    blob: str
    size: int


@dataclass(frozen=True, slots=True)
class Joined:
    """The output of a join: put together from its children's when somebody reads it."""


Output = bytes | Stored | Joined


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """An attempt that is over. Times in ms since the epoch.

    `outcome` is `succeeded`, `failed` or `cancelled`; a lost worker is a failure with the code
    `worker_lost`. `error` is the start of its text.
    """

    number: int
    outcome: StepStatus
    started_at: EpochMs
    finished_at: EpochMs
    error: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One step, as far as it has come. Times in ms since the epoch.

    A run has one record for each step, and one for each compensation. `attempt` counts the
    recorded attempts; `started_at` is when the first of them began; `next_at` is when a backoff
    or a sleep ends, or a wait expires. `output` is compact JSON. `child`: the latest run that a
    sub-workflow step started; while the record is pending that run may not exist yet. `losses`
    counts the workers that were lost, one after the other, while the next attempt was alone in
    its process; `hosts_lost` is how many the run had lost when it last waited for that reason.
    `history` has the newest attempts, oldest first, where a program keeps them.
    """

    key: StepKey
    status: StepStatus
    attempt: int = 0
    started_at: EpochMs | None = None
    finished_at: EpochMs | None = None
    output: Output | None = None
    error: str | None = None
    code: str | None = None
    next_at: EpochMs | None = None
    child: RunId | None = None
    losses: int = 0
    hosts_lost: int = 0
    history: tuple[AttemptRecord, ...] = ()
