"""A run as a document: the head that one worker at a time may move."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType


class Status(StrEnum):
    """Where a run stands. `running` is never stored: it means that a lease is in force."""

    PENDING = "pending"
    RUNNING = "running"
    SLEEPING = "sleeping"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"


LIVE = frozenset({Status.PENDING, Status.RUNNING, Status.SLEEPING, Status.WAITING})


class StepStatus(StrEnum):
    """Where a step stands."""

    PENDING = "pending"
    RUNNING = "running"
    RETRYING = "retrying"
    SLEEPING = "sleeping"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Blob:
    """An immutable item beside the head: a page, a large output, an input, a mail body.

    Its name contains the lease token of its writer (but for `input`) and which write it belongs
    to, so that neither a worker which lost its lease nor a write that comes late overwrites
    anything; it counts only once the head refers to it.
    """

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Mail:
    """A message in a run's mailbox. The body is inline, or in the blob called `blob`.

    Beside a blob `body` is what there is to know without it: of a signal how many bytes it has.
    """

    kind: str
    name: str
    at: int
    body: bytes | None = None
    blob: str | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """The one document of a run. Times in ms since the epoch.

    `ready_at`: a claim may succeed from then on. `wake_at`: the tick must look then (None:
    never). Both are caches for the store; what governs a step stands in the journal.
    `token`, `until` and `claimed_at` are the lease (meaningless without a token). `revision` counts
    what others did (mail, cancel), `commit` what the lease's holders wrote; `lost` counts the
    leases lost since the last recorded outcome. `journal` is opaque to stores (core.journal).
    `input` is inline JSON, or None if it is in the blob `input`. `parent` is the run that started
    this one by a sub-workflow step, `depth` how many runs are above. `cascade`: it was cancelled
    together with its children. `owes`: it has ended, and its parent has not been told yet, or its
    children are not cancelled yet.
    """

    run_id: str
    project: str
    workflow: str
    version: int
    created_at: int
    status: Status = Status.PENDING
    ended_at: int | None = None
    ready_at: int = 0
    wake_at: int | None = None
    token: str | None = None
    until: int = 0
    claimed_at: int = 0
    revision: int = 0
    commit: int = 0
    lost: int = 0
    journal: bytes = b""
    mail: Mapping[str, Mail] = field(default_factory=lambda: MappingProxyType({}))
    input: bytes | None = None
    idempotency_key: str | None = None
    test: bool = False
    parent: str | None = None
    depth: int = 0
    owes: bool = False
    cascade: bool = False
    format: int = 1

    @property
    def writes(self) -> int:
        """Grows with every write that changes what the next decision looks at."""
        return self.commit + self.revision

    @property
    def live(self) -> bool:
        """Whether the run may still move."""
        return self.status in LIVE

    def shown_status(self, now: int) -> Status:
        """The status a user sees: a live run whose lease is in force is running."""
        held = self.token is not None and self.until > now
        return Status.RUNNING if self.live and held else self.status
