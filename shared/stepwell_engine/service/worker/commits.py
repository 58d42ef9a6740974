"""What the holder of a lease writes: a decision as one commit."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from stepwell_engine.core.run.attempt import Failed, Outcome, Succeeded, UncommittedOutcome
from stepwell_engine.core.run.decision import Decision, Finish, Park
from stepwell_engine.core.run.head import Head, wake_time
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.journal_codec import Packed
from stepwell_engine.core.run.status import Status
from stepwell_engine.core.values.units import EpochMs
from stepwell_engine.errors import Unstorable
from stepwell_engine.ports import UNCHECKED, Commit

_CANNOT: Final = "the outcome cannot be stored: "


def commit_of(
    head: Head,
    packed: Packed,
    decision: Decision,
    before: Journal,
    now: EpochMs,
    *,
    release: bool,
    recorded: bool,
) -> Commit:
    """The commit of a decision about a run whose lease is held as `head` says.

    `before` is the journal as stored; `recorded`: outcomes of attempts are in the new one.
    """
    moved = decision.journal.place != before.place
    commit = Commit(
        run_id=head.run_id,
        lease_token=head.lease_token or "",
        commit_seq=head.commit_seq,
        journal=packed.data,
        inbox_seq=head.inbox_seq if decision.absent else UNCHECKED,
        release=release,
        progress=moved,
        recorded=recorded or moved,
        consumed=decision.consumed,
        taken=decision.taken,
        blobs=packed.blobs,
        format=packed.format,
    )
    match decision.next:
        case Park(status, ready_at, signal):
            return replace(
                commit,
                status=status,
                ready_at=ready_at,
                wake_at=wake_time(ready_at, head.deadline),
                wants=signal,
                inbox_seq=head.inbox_seq,
            )
        case Finish(status):
            notify_pending = head.owes_notice
            return replace(
                commit,
                status=status,
                ended_at=now,
                wake_at=now if notify_pending else None,
                notify_pending=notify_pending,
            )
        case _ if release:
            return replace(commit, status=Status.PENDING, ready_at=0, wake_at=now)
        case _:
            return replace(commit, status=Status.PENDING)


def stopped_commit_of(head: Head, packed: Packed) -> Commit:
    """The commit of what was in flight when the run was stopped: it releases, moves nothing."""
    return Commit(
        run_id=head.run_id,
        lease_token=head.lease_token or "",
        commit_seq=head.commit_seq,
        journal=packed.data,
        expect="stopped",
        release=True,
        progress=True,
        recorded=True,
        wake_at=None,
        blobs=packed.blobs,
        format=packed.format,
    )


def release_of(head: Head, ready_at: EpochMs, wake_at: EpochMs | None = None) -> Commit:
    """The commit that lets go of a run as it is. It is ready from `ready_at` on, when the tick
    looks at it, too, unless at `wake_at`.
    """
    return Commit(
        run_id=head.run_id,
        lease_token=head.lease_token or "",
        commit_seq=head.commit_seq,
        journal=head.journal,
        release=True,
        ready_at=ready_at,
        wake_at=wake_time(ready_at if wake_at is None else wake_at, head.deadline),
    )


def without_largest(
    uncommitted: Sequence[UncommittedOutcome], error: Unstorable
) -> list[UncommittedOutcome]:
    """Outcomes that can never be stored together, the largest one failed with the reason.

    Nobody knows which of them is too large; what stands beside it must not fail with it. Raises
    RuntimeError if all have failed so, and cannot be stored even then.
    """
    sizes = [_size(one.outcome) for one in uncommitted]
    if max(sizes, default=-1) < 0:
        raise RuntimeError(f"not even a failure can be stored: {error}") from error
    largest = sizes.index(max(sizes))
    failed = Failed(f"{_CANNOT}{error}", "output_too_large", retryable=False)
    return [
        replace(one, outcome=failed) if place == largest else one
        for place, one in enumerate(uncommitted)
    ]


def _size(outcome: Outcome) -> int:
    """Of what an outcome brings; below 0 if it says already that nothing can be stored."""
    match outcome:
        case Succeeded(output):
            return len(output or b"")
        case Failed(message):
            return -1 if message.startswith(_CANNOT) else 0
        case _:
            return 0
