"""Runs in memory: the port's rules in their plainest form."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from stepwell_engine.adapters.memory.inbox import MemoryInboxes
from stepwell_engine.core.run.head import Blob, Head, wake_time
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.run.status import REVIVABLE, Status
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.core.values.units import EpochMs, LeaseToken, ProjectRef, RunId, WorkflowName
from stepwell_engine.limits import CLOCK_MARGIN, RUN_FORMAT, TICK
from stepwell_engine.ports import (
    KEEP,
    UNCHECKED,
    Commit,
    Done,
    Due,
    Refused,
    Revival,
    Written,
)


class MemoryRuns(MemoryInboxes):
    """The Runs port. Nothing outlives the object.

    Every condition (`_may_…`) and every transition (`_claimed`, …) is a method of its own.
    """

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[tuple[str, str, str], str] = {}

    # --- conditions ---------------------------------------------------------------------------

    def _lease_is_over(self, head: Head, now: EpochMs) -> bool:
        return head.lease_expires_at + CLOCK_MARGIN < now

    def _may_claim(self, head: Head, now: EpochMs, lane: Lane) -> bool:
        ready = head.live and head.ready_at <= now and not self._is_late(head, now)
        return ready and self._is_free(head, now) and self._has_place(head, lane)

    def _is_late(self, head: Head, now: EpochMs) -> bool:
        return head.deadline is not None and head.deadline <= now

    def _is_free(self, head: Head, now: EpochMs) -> bool:
        return head.lease_token is None or self._lease_is_over(head, now)

    def _has_place(self, head: Head, lane: Lane) -> bool:
        return lane is not Lane.SHARED or not head.suspect

    def _holds(self, head: Head, lease_token: LeaseToken) -> bool:
        return head.lease_token == lease_token

    def _at(self, head: Head, commit_seq: int) -> bool:
        return head.commit_seq == commit_seq

    def _may_extend(self, head: Head, lease_token: LeaseToken, lease_expires_at: EpochMs) -> bool:
        return (
            self._holds(head, lease_token)
            and head.live
            and head.lease_expires_at <= lease_expires_at
        )

    def _may_commit(self, head: Head, commit: Commit) -> bool:
        expected = head.live if commit.expect == "live" else head.stopped
        unseen = commit.inbox_seq is not UNCHECKED and commit.inbox_seq != head.inbox_seq
        return (
            self._holds(head, commit.lease_token)
            and self._at(head, commit.commit_seq)
            and expected
            and not unseen
        )

    def _may_stop(self, head: Head, generation: int) -> bool:
        return head.live and self._is_of(head, generation)

    def _is_of(self, head: Head, generation: int) -> bool:
        return head.generation == generation

    def _may_close(self, head: Head, lease_token: LeaseToken, commit_seq: int) -> bool:
        return head.stopped and self._holds(head, lease_token) and self._at(head, commit_seq)

    def _may_mark_notified(self, head: Head, generation: int) -> bool:
        return head.notify_pending and self._is_of(head, generation)

    def _may_revive(self, head: Head, revival: Revival) -> bool:
        return (
            head.status in REVIVABLE
            and self._is_of(head, revival.generation)
            and self._at(head, revival.commit_seq)
            and self._is_free(head, revival.now)
        )

    # --- transitions --------------------------------------------------------------------------

    def _claimed(
        self,
        head: Head,
        lease_token: LeaseToken,
        now: EpochMs,
        lease_expires_at: EpochMs,
        lane: Lane,
    ) -> Head:
        taken_over, alone = head.lease_token is not None, lane is Lane.ALONE
        overdue = head.wake_at is not None and head.wake_at + TICK < now
        return replace(
            head,
            wake_at=wake_time(lease_expires_at, head.deadline) if overdue else head.wake_at,
            lease_token=lease_token,
            lease_expires_at=lease_expires_at,
            claimed_at=now,
            lost_leases=head.lost_leases + taken_over,
            alone=alone,
            alone_losses=head.alone_losses + (taken_over and head.alone),
            format=max(head.format, RUN_FORMAT) if alone else head.format,
        )

    def _committed(self, head: Head, commit: Commit) -> Head:
        left = {key: message for key, message in head.inbox.items() if key not in commit.consumed}
        return replace(
            head,
            commit_seq=head.commit_seq + 1,
            journal=commit.journal,
            status=head.status if commit.status is KEEP else commit.status,
            ready_at=head.ready_at if commit.ready_at is KEEP else commit.ready_at,
            wake_at=self._wake_at(head, commit),
            ended_at=head.ended_at if commit.ended_at is KEEP else commit.ended_at,
            lease_token=None if commit.release else head.lease_token,
            lease_expires_at=0 if commit.release else head.lease_expires_at,
            claimed_at=0 if commit.release else head.claimed_at,
            lost_leases=0 if commit.progress else head.lost_leases,
            alone=head.alone and not commit.release,
            alone_losses=0 if commit.recorded else head.alone_losses,
            notify_pending=commit.notify_pending or head.notify_pending,
            inbox=MappingProxyType(left),
            format=max(head.format, commit.format),
            overflow_count=head.overflow_count - len(commit.taken),
            wants=head.wants if commit.wants is KEEP else commit.wants,
            wants_seq=head.wants_seq if commit.wants is KEEP else head.commit_seq + 1,
        )

    def _wake_at(self, head: Head, commit: Commit) -> int | None:
        notify_pending = head.notify_pending and commit.wake_at is None
        return head.wake_at if commit.wake_at is KEEP or notify_pending else commit.wake_at

    def _stopped(self, head: Head, status: Status, now: EpochMs, cascade: bool) -> Head:
        notify_pending = cascade or head.owes_notice
        return replace(
            head,
            status=status,
            ended_at=now,
            inbox_seq=head.inbox_seq + 1,
            notify_pending=notify_pending,
            cascade=cascade,
            wake_at=now if notify_pending else self._lease_end(head),
        )

    def _lease_end(self, head: Head) -> EpochMs | None:
        return None if head.lease_token is None else head.lease_expires_at

    def _closed(self, head: Head, journal: bytes) -> Head:
        return replace(
            head,
            journal=journal,
            commit_seq=head.commit_seq + 1,
            lease_token=None,
            lease_expires_at=0,
            claimed_at=0,
            alone=False,
            wake_at=head.wake_at if head.notify_pending else None,
        )

    def _revived(self, head: Head, revival: Revival) -> Head:
        return replace(
            self._closed(head, revival.journal),
            status=Status.PENDING,
            ended_at=None,
            ready_at=0,
            wake_at=wake_time(revival.now, revival.deadline),
            deadline=revival.deadline,
            generation=head.generation + 1,
            told=self._is_told(head),
            notify_pending=False,
            lost_leases=0,
            alone_losses=0,
            format=max(head.format, RUN_FORMAT),
        )

    def _is_told(self, head: Head) -> bool:
        return head.told or (head.parent is not None and not head.notify_pending)

    # --- the port -----------------------------------------------------------------------------

    def create(self, head: Head, blobs: Sequence[Blob] = ()) -> Written:
        """Put a new run and its idempotency key; Refused with the run in its way."""
        with self._lock:
            key = head.idempotency_key
            holder = self._of_key(head.project, head.workflow, key) if key is not None else None
            holder = holder or self._read(head.run_id)
            if holder is not None:
                return Refused(holder)
            if key is not None:
                self._keys[head.project, head.workflow, key] = head.run_id
            return self._put(head, blobs)

    def by_key(self, project: ProjectRef, workflow: WorkflowName, key: str) -> Head | None:
        """The run that an idempotency key stands for."""
        with self._lock:
            return self._of_key(project, workflow, key)

    def claim(
        self,
        run_id: RunId,
        lease_token: LeaseToken,
        now: EpochMs,
        lease_expires_at: EpochMs,
        lane: Lane = Lane.HOST,
    ) -> Written:
        """Take the lease; own token: had it already."""
        with self._lock:
            head = self._read(run_id)
            if head is None:
                return Refused(None)
            if head.lease_token == lease_token:
                return Done(head)
            if not self._may_claim(head, now, lane):
                return Refused(head)
            return self._put(self._claimed(head, lease_token, now, lease_expires_at, lane))

    def extend(
        self, run_id: RunId, lease_token: LeaseToken, lease_expires_at: EpochMs, wake_at: EpochMs
    ) -> Written:
        """Move the end of a held lease."""
        with self._lock:
            head = self._read(run_id)
            if head is None or not self._may_extend(head, lease_token, lease_expires_at):
                return Refused(head)
            return self._put(replace(head, lease_expires_at=lease_expires_at, wake_at=wake_at))

    def commit(self, commit: Commit) -> Written:
        """One step forward."""
        with self._lock:
            head = self._read(commit.run_id)
            if head is None or not self._may_commit(head, commit):
                return Refused(head)
            return self._put(self._committed(head, commit), commit.blobs)

    def let_go(self, commit: Commit) -> bool:
        """One step forward, whatever the format."""
        with self._lock:
            head = self._heads.get(commit.run_id)
            if head is None or not self._may_commit(head, commit):
                return False
            self._put(self._committed(head, commit), commit.blobs)
            return True

    def cancel(
        self, run_id: RunId, now: EpochMs, cascade: bool = False, generation: int = 0
    ) -> Written:
        """End a live run; its lease stays."""
        with self._lock:
            head = self._read(run_id)
            if head is None or not self._may_stop(head, generation):
                return Refused(head)
            return self._put(self._stopped(head, Status.CANCELLED, now, cascade))

    def time_out(self, run_id: RunId, now: EpochMs, generation: int) -> Written:
        """End a live run that is late; its lease stays."""
        with self._lock:
            head = self._read(run_id)
            if head is None or not self._may_stop(head, generation):
                return Refused(head)
            stopped = self._stopped(head, Status.TIMED_OUT, now, cascade=False)
            return self._put(replace(stopped, format=max(head.format, RUN_FORMAT)))

    def revive(self, revival: Revival) -> Written:
        """Let a run that has ended go on."""
        with self._lock:
            head = self._read(revival.run_id)
            if head is None or not self._may_revive(head, revival):
                return Refused(head)
            return self._put(self._revived(head, revival), revival.blobs)

    def close(
        self, run_id: RunId, lease_token: LeaseToken, commit_seq: int, journal: bytes
    ) -> Written:
        """Settle a stopped run whose lease is over."""
        with self._lock:
            head = self._read(run_id)
            if head is None or not self._may_close(head, lease_token, commit_seq):
                return Refused(head)
            return self._put(self._closed(head, journal))

    def mark_notified(self, run_id: RunId, generation: int = 0) -> Written:
        """Nobody is to be notified any more."""
        with self._lock:
            head = self._read(run_id)
            if head is None or not self._may_mark_notified(head, generation):
                return Refused(head)
            return self._put(replace(head, notify_pending=False, wake_at=self._lease_end(head)))

    def due(self, before: EpochMs, cursor: str | None, limit: int) -> tuple[list[Due], str | None]:
        """A page of the heads with wake_at <= before, by (wake_at, run_id)."""
        after = (-1, "") if cursor is None else _position(cursor)
        with self._lock:
            found = sorted(
                (head.wake_at, head.run_id, head.project)
                for head in self._heads.values()
                if head.wake_at is not None
                and head.wake_at <= before
                and head.format <= self.known_format
            )
        rest = [entry for entry in found if entry[:2] > after]
        page = [Due(about_run(run_id, project), at) for at, run_id, project in rest[:limit]]
        more = len(rest) > limit
        return page, f"{page[-1].wake_at}:{page[-1].subject.id}" if more else None

    def list(
        self,
        project: ProjectRef,
        workflow: WorkflowName,
        before: str | None,
        limit: int,
        status: Status | None,
    ) -> list[Head]:
        """Heads of a workflow, newest first; those of a newer format left out."""
        with self._lock:
            found = [
                head
                for head in self._heads.values()
                if (head.project, head.workflow) == (project, workflow)
                and (before is None or head.run_id < before)
                and (status is None or head.status is status)
                and head.format <= self.known_format
            ]
        return sorted(found, key=lambda head: head.run_id, reverse=True)[:limit]

    def blob(self, run_id: RunId, name: str) -> bytes | None:
        """A blob's data."""
        with self._lock:
            return self._blobs.get((run_id, name))

    def blobs(self, run_id: RunId, names: Sequence[str]) -> Mapping[str, bytes]:
        """The data of those that exist."""
        with self._lock:
            known = self._blobs
            return {name: known[run_id, name] for name in names if (run_id, name) in known}

    # --- under the lock -----------------------------------------------------------------------

    def _of_key(self, project: ProjectRef, workflow: WorkflowName, key: str) -> Head | None:
        run_id = self._keys.get((project, workflow, key))
        return None if run_id is None else self._read(run_id)


def _position(cursor: str) -> tuple[int, str]:
    wake_at, _, run_id = cursor.partition(":")
    return int(wake_at), run_id
