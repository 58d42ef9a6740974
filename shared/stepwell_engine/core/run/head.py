"""A run as a document: the head that one worker at a time may move."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from stepwell_engine.core.run.inbox import InboxMessage
from stepwell_engine.core.run.status import LIVE, Status


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
    lease_token: str | None = None
    lease_expires_at: int = 0
    claimed_at: int = 0
    inbox_seq: int = 0
    commit_seq: int = 0
    lost_leases: int = 0
    journal: bytes = b""
    inbox: Mapping[str, InboxMessage] = field(default_factory=lambda: MappingProxyType({}))
    input: bytes | None = None
    idempotency_key: str | None = None
    test: bool = False
    parent: str | None = None
    depth: int = 0
    notify_pending: bool = False
    cascade: bool = False
    format: int = 1

    @property
    def writes(self) -> int:
        """Grows with every write that changes what the next decision looks at."""
        return self.commit_seq + self.inbox_seq

    @property
    def live(self) -> bool:
        """Whether the run may still move."""
        return self.status in LIVE

    def shown_status(self, now: int) -> Status:
        """The status a user sees: a live run whose lease is in force is running."""
        held = self.lease_token is not None and self.lease_expires_at > now
        return Status.RUNNING if self.live and held else self.status
