"""A run as a document: the head that one worker at a time may move."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from stepwell_engine import limits
from stepwell_engine.core.run.inbox import InboxMessage
from stepwell_engine.core.run.status import LIVE, STOPPED, Status
from stepwell_engine.core.values.units import (
    EpochMs,
    LeaseToken,
    ProjectRef,
    RunId,
    WorkflowName,
)


@dataclass(frozen=True, slots=True)
class Blob:
    """An immutable item beside the head: a page, a large output, an input, the body of a message.

    Its name contains the lease token of its writer and which write it belongs to (an input is
    called `input`, and a message's body carries the id of its delivery or of the child run), so
    that neither a worker which lost its lease nor a write that comes late overwrites anything; it
    counts only once the head refers to it.
    """

    name: str
    data: bytes


def wake_time(at: EpochMs, deadline: EpochMs | None) -> EpochMs:
    """When the tick must look at a live run that is ready, or whose lease ends, `at` a time.

    At its deadline at the latest, leased or not.
    """
    return at if deadline is None else min(at, deadline)


@dataclass(frozen=True, slots=True)
class Head:
    """The one document of a run. Times in ms since the epoch.

    `ready_at`: a claim may succeed from then on. `wake_at`: the tick must look then (None:
    never). Both are caches for the store; what governs a step stands in the journal.
    `lease_token`, `lease_expires_at` and `claimed_at` are the lease (meaningless without a token).
    `inbox_seq` counts what others did (messages, cancel), `commit_seq` what the lease's holders
    wrote; `lost_leases` counts the leases lost since the position moved, `alone_losses` those of
    them that were lost by a worker which was alone in its process, since the last recorded outcome;
    `alone`: the lease's holder is. `journal` is opaque
    to stores (see core.run.journal_codec). `input` is inline JSON, or None if it is in the blob
    `input`. `parent` is the run that started this one by a sub-workflow step, `depth` how many runs
    are above. `cascade`: it was cancelled together with its children. `notify_pending`: it has
    ended, and its parent is not notified yet, or its children are not cancelled yet.

    `inbox` holds the first few messages; more signals go to the overflow beside the head.
    `overflow_last` is the last number there that counts, `overflow_count` how many of them are
    neither consumed nor void. `wants` is the signal that a parked run waits for, "" one that waits
    for none; true only if `wants_seq` is `commit_seq`, for an older version writes neither.

    From `deadline` on nobody claims the run: who comes ends it as timed out. `generation` counts
    how often it was revived after its end. `told`: its parent learned of an earlier end.
    """

    run_id: RunId
    project: ProjectRef
    workflow: WorkflowName
    version: int
    created_at: EpochMs
    status: Status = Status.PENDING
    ended_at: EpochMs | None = None
    ready_at: EpochMs = 0
    wake_at: EpochMs | None = None
    lease_token: LeaseToken | None = None
    lease_expires_at: EpochMs = 0
    claimed_at: EpochMs = 0
    inbox_seq: int = 0
    commit_seq: int = 0
    lost_leases: int = 0
    journal: bytes = b""
    inbox: Mapping[str, InboxMessage] = field(default_factory=lambda: MappingProxyType({}))
    input: bytes | None = None
    idempotency_key: str | None = None
    test: bool = False
    parent: RunId | None = None
    depth: int = 0
    notify_pending: bool = False
    cascade: bool = False
    format: int = 1
    overflow_last: int = 0
    overflow_count: int = 0
    wants: str = ""
    wants_seq: int = 0
    alone: bool = False
    alone_losses: int = 0
    deadline: EpochMs | None = None
    generation: int = 0
    told: bool = False

    @property
    def writes(self) -> int:
        """Grows with every write that changes what the next decision looks at."""
        return self.commit_seq + self.inbox_seq

    @property
    def live(self) -> bool:
        """Whether the run may still move."""
        return self.status in LIVE

    @property
    def stopped(self) -> bool:
        """Whether it was ended from outside: cancelled, or timed out."""
        return self.status in STOPPED

    @property
    def owes_notice(self) -> bool:
        """Whether its end has to be told to a parent, which knows of none so far."""
        return self.parent is not None and not self.told

    def overdue(self, now: EpochMs) -> bool:
        """Whether its deadline is over, so that it is to be timed out."""
        return self.live and self.deadline is not None and self.deadline <= now

    @property
    def pending(self) -> int:
        """How many messages are not consumed yet."""
        return len(self.inbox) + self.overflow_count

    def wakes_for(self, signal: str) -> bool:
        """Whether a signal has to wake the run: it may wait for that, and no worker holds it.

        A worker neither parks nor gives up a wait without having seen all messages.
        """
        waits = self.wants_seq != self.commit_seq or self.wants == signal
        return self.lease_token is None and waits

    @property
    def suspect(self) -> bool:
        """Whether it may be what ends its workers: its attempts run one at a time, each alone."""
        return self.lost_leases >= limits.SUSPECT_LOST_LEASES

    def held(self, now: EpochMs) -> bool:
        """Whether a worker is at it, as far as the lease tells."""
        return self.lease_token is not None and self.lease_expires_at > now

    def shown_status(self, now: EpochMs) -> Status:
        """The status a user sees: a live run whose lease is in force is running."""
        return Status.RUNNING if self.live and self.held(now) else self.status
