"""The runs: heads with their blobs, inboxes and idempotency keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Protocol

from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.inbox import InboxMessage, Slot
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.run.status import Status
from stepwell_engine.core.values.subject import Subject
from stepwell_engine.core.values.units import EpochMs, LeaseToken, ProjectRef, RunId, WorkflowName
from stepwell_engine.limits import BASE_RUN_FORMAT


class Keep(Enum):
    """Leave the stored value as it is."""

    KEEP = "keep"


KEEP = Keep.KEEP


class Unchecked(Enum):
    """Whatever the stored value is."""

    UNCHECKED = "unchecked"


UNCHECKED = Unchecked.UNCHECKED


@dataclass(frozen=True, slots=True)
class Commit:
    """One conditional write of a head by the holder of its lease.

    Conditions: the stored `lease_token` and `commit_seq` are these; the status is live (`expect`
    "live") or `stopped`, which is cancelled or timed out; and the stored `inbox_seq` is this one
    (nobody else wrote since: no new message) or UNCHECKED.
    Then: `commit_seq` + 1, the journal, and `status`, `ready_at`, `wake_at`, `ended_at`, of which
    KEEP leaves the stored value as it is and None removes it; the `consumed` messages go from the
    inbox, and `overflow_count` goes down by as many as are `taken` from the overflow, whatever it
    is by then; `wants`, unless KEEP, with `wants_seq` the new `commit_seq`; `lost_leases` is 0
    again if `progress`, `alone_losses` if `recorded`; the lease goes if `release`;
    `notify_pending` is set if given and never unset; the format is raised to `format`, and never
    lowered. `blobs` are written before the head. While `notify_pending`, no write but
    `mark_notified` removes wake_at.
    """

    run_id: RunId
    lease_token: LeaseToken
    commit_seq: int
    journal: bytes
    expect: Literal["live", "stopped"] = "live"
    inbox_seq: int | Unchecked = UNCHECKED
    status: Status | Keep = KEEP
    ready_at: EpochMs | Keep = KEEP
    wake_at: EpochMs | Keep | None = KEEP
    ended_at: EpochMs | Keep = KEEP
    release: bool = False
    progress: bool = False
    wants: str | Keep = KEEP
    recorded: bool = False
    consumed: tuple[str, ...] = ()
    taken: tuple[int, ...] = ()
    blobs: tuple[Blob, ...] = ()
    notify_pending: bool = False
    format: int = BASE_RUN_FORMAT


@dataclass(frozen=True, slots=True)
class Revival:
    """A new generation of a run that has ended, with a journal from which it goes on.

    Conditions: it failed or timed out; the stored `generation` and `commit_seq` are these; and no
    lease, or one that ended more than CLOCK_MARGIN before `now`.
    Then: pending, both numbers + 1, the journal, ready at once, wake_at = `now`, `deadline` in
    place of the old one, the format raised to RUN_FORMAT. Gone are ended_at, the lease, what was
    lost, and notify_pending; `told` if it has a parent and that was notified. `blobs` are written
    before the head.
    """

    run_id: RunId
    generation: int
    commit_seq: int
    journal: bytes
    now: EpochMs
    deadline: EpochMs | None = None
    blobs: tuple[Blob, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """The write happened; `head` is the document after it."""

    head: Head


@dataclass(frozen=True, slots=True)
class Refused:
    """A condition did not hold, nothing was written; `head` as it stands, None if there is none."""

    head: Head | None


Written = Done | Refused


class Runs(Protocol):
    """The runs: heads with their blobs and idempotency keys."""

    def create(self, head: Head, blobs: Sequence[Blob] = ()) -> Written:
        """Put a new run, and its idempotency key if it has one, at once or not at all.

        Refused with the run that holds (project, workflow, key), or that has this very id. A key
        whose run is gone is free again.
        """
        ...

    def get(self, run_id: RunId) -> Head | None:
        """The head, strongly consistent. NewerFormat if this version cannot read it."""
        ...

    def by_key(self, project: ProjectRef, workflow: WorkflowName, key: str) -> Head | None:
        """The run that an idempotency key stands for."""
        ...

    def claim(
        self,
        run_id: RunId,
        lease_token: LeaseToken,
        now: EpochMs,
        lease_expires_at: EpochMs,
        lane: Lane = Lane.HOST,
    ) -> Written:
        """Take the lease: token, end, claimed_at = now, `alone` in that lane.

        And wake_at, to the end of the lease or the deadline, of a run that was overdue by more than
        a TICK.

        Conditions: live; a format this version reads; ready_at <= now < deadline; no lease, or one
        that ended more than CLOCK_MARGIN before now: then `lost_leases` + 1, and `alone_losses` + 1
        if its holder was alone. No suspect in the lane SHARED. The lane ALONE raises the format to
        2. A stored token equal to `lease_token` is Done too: the claim had succeeded before.
        """
        ...

    def extend(
        self,
        run_id: RunId,
        lease_token: LeaseToken,
        lease_expires_at: EpochMs,
        wake_at: EpochMs,
    ) -> Written:
        """Move the end of a lease that is held, and wake_at.

        Conditions: this token, live, an end no earlier than the stored one: a call that comes
        late must not shorten a lease in use.
        """
        ...

    def commit(self, commit: Commit) -> Written:
        """One step forward; see Commit."""
        ...

    def let_go(self, commit: Commit) -> bool:
        """A commit to a head of whatever format; whether it was written.

        For the holder of a lease that may not be able to read the head any more, since a newer
        version wrote to it. Such a commit consumes nothing, and its `wake_at` is not None.
        """
        ...

    def deliver(
        self,
        run_id: RunId,
        message_id: str,
        message: InboxMessage,
        now: EpochMs,
        blob: Blob | None,
        key: str | None = None,
        seen: Head | None = None,
    ) -> "Delivered | Refused":
        """Put a message into the inbox: inbox_seq + 1, and, to wake the run, ready_at = 0,
        wake_at = now.

        A signal wakes a run that `wakes_for` it, the end of a child any. Signals without a key go
        into a small head while it has fewer than INLINE_MESSAGES and nothing is pending in the
        overflow, other signals into that; `overflow_last` and `overflow_count` + 1 then. Ends of
        children always go into the head. Messages are consumed in the order in which they counted.

        Conditions: live; no message of this id in the head; and, for a signal, fewer than
        MAX_PENDING_SIGNALS pending. A message of this id that is still in the head is Delivered,
        and nothing moves; so is a `key` (of this run) that a message was delivered with before,
        also once that is consumed and the run has ended. `seen`: the head as it was read before,
        which saves a read.
        """
        ...

    def overflow(self, run_id: RunId, first: int, last: int) -> Mapping[int, Slot]:
        """The slots of the overflow with these numbers, both included, in order.

        Strongly consistent. Those up to the `overflow_last` of a head that was read before are
        there, unless they are consumed.
        """
        ...

    def cancel(
        self, run_id: RunId, now: EpochMs, cascade: bool = False, generation: int = 0
    ) -> Written:
        """status = cancelled, ended_at = now, cascade, inbox_seq + 1.

        Conditions: live, this generation: what comes late stops no run that was revived since.
        The lease stays, so that the worker in flight can record its outcome: wake_at is its end
        then, or is removed without one. With a parent that is not told, or to cascade, there is
        somebody to notify: notify_pending, and wake_at = now.
        """
        ...

    def time_out(self, run_id: RunId, now: EpochMs, generation: int) -> Written:
        """status = timed_out; all else as `cancel` does it, without cascading.

        The format rises to RUN_FORMAT: an older version does not settle such a run.
        """
        ...

    def revive(self, revival: Revival) -> Written:
        """Let a run that has ended go on in a new generation; see Revival."""
        ...

    def close(
        self, run_id: RunId, lease_token: LeaseToken, commit_seq: int, journal: bytes
    ) -> Written:
        """Settle a stopped run whose lease is over: journal replaced, lease and wake_at gone.

        Conditions: cancelled or timed out, this token, this commit number; commit_seq + 1. wake_at
        stays while notify_pending.
        """
        ...

    def mark_notified(self, run_id: RunId, generation: int = 0) -> Written:
        """The parent is notified, the children are cancelled: notify_pending goes.

        wake_at is the end of the lease if one is held, else none.
        Conditions: notify_pending, this generation.
        """
        ...

    def due(
        self, before: EpochMs, cursor: str | None, limit: int
    ) -> tuple[list["Due"], str | None]:
        """A page of the heads with wake_at <= before, any status; NewerFormat ones left out.

        May be stale. The second value is the cursor of the next page.
        """
        ...

    def list(
        self,
        project: ProjectRef,
        workflow: WorkflowName,
        before: str | None,
        limit: int,
        status: Status | None,
    ) -> list[Head]:
        """Heads of a workflow, newest first, with ids below `before`; `status` as stored."""
        ...

    def blob(self, run_id: RunId, name: str) -> bytes | None:
        """A blob's data."""
        ...

    def blobs(self, run_id: RunId, names: Sequence[str]) -> Mapping[str, bytes]:
        """The data of several blobs, by name; those that do not exist are left out."""
        ...


@dataclass(frozen=True, slots=True)
class Delivered:
    """The message is or was in the inbox; `at` is when it was put there first.

    `wakes`: somebody should look at the run now.
    """

    head: Head | None
    at: EpochMs
    wakes: bool = True


@dataclass(frozen=True, slots=True)
class Due:
    """What the tick must look at, and when."""

    subject: Subject
    wake_at: EpochMs
