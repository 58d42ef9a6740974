"""Defects of the protocol, each of which the simulator must find.

A mutation replaces a condition or a transition of the memory adapter, a method of the service, or
a function of the core; it lists the properties of which one is then violated.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from stepwell_engine.core.declared import actions, waits
from stepwell_engine.core.declared import decide as deciding
from stepwell_engine.core.declared.definition import Step
from stepwell_engine.core.declared.transitions import finish_step
from stepwell_engine.core.run.attempt import Attempt, Succeeded
from stepwell_engine.core.run.decision import Decision, StartAttempts
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.journal_codec import JournalCodec
from stepwell_engine.core.run.keys import UNNAMED
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.core.run.transitions import succeeded_record
from stepwell_engine.core.values.subject import Subject, about_run
from stepwell_engine.errors import NewerFormat
from stepwell_engine.limits import MINUTE
from stepwell_engine.ports import UNCHECKED, Commit, Dispatcher, Done, Due, Runs, Written
from stepwell_engine.service.runs.starts import Starts
from stepwell_engine.service.worker.advance import Advance
from stepwell_engine.service.worker.leased_run import LeasedRun
from tests.sim.links import Store
from tests.sim.mutation import Mutation, advance, leased_run, patch, store
from tests.sim.mutations_blame import BLAME
from tests.sim.mutations_branches import BRANCHES
from tests.sim.mutations_endings import ENDINGS
from tests.sim.mutations_formats import FORMATS
from tests.sim.mutations_hints import HINTS
from tests.sim.mutations_inbox import INBOX
from tests.sim.mutations_refusals import REFUSALS
from tests.sim.mutations_stops import STOPS
from tests.sim.mutations_stored import STORED
from tests.sim.ports import SimRuns
from tests.sim.runner import SimStepRunner
from tests.sim.world import Engine

# --- the store --------------------------------------------------------------------------------


class NoLeaseToken(Store):
    def _holds(self, head: Head, token: str) -> bool:
        return True


class NoCommitSeq(Store):
    def _at(self, head: Head, commit: int) -> bool:
        return True


class NoInboxSeq(Store):
    def _may_commit(self, head: Head, commit: Commit) -> bool:
        return super()._may_commit(head, replace(commit, inbox_seq=UNCHECKED))


class NoLiveStatus(Store):
    def _may_commit(self, head: Head, commit: Commit) -> bool:
        return super()._may_commit(replace(head, status=Status.PENDING), commit)


class NoWakeAtOnPark(Store):
    def _committed(self, head: Head, commit: Commit) -> Head:
        after = super()._committed(head, commit)
        parked = commit.release and commit.status in (Status.SLEEPING, Status.WAITING)
        return replace(after, wake_at=None) if parked else after


class NoWakeAtOnRelease(Store):
    def _committed(self, head: Head, commit: Commit) -> Head:
        after = super()._committed(head, commit)
        ready = commit.release and commit.status is Status.PENDING and commit.ready_at == 0
        return replace(after, wake_at=None) if ready else after


class MessageStays(Store):
    def _committed(self, head: Head, commit: Commit) -> Head:
        return super()._committed(head, replace(commit, consumed=()))


class MessageLeavesReadyAt(Store):
    def _woken(self, head: Head, now: int) -> Head:
        return replace(super()._woken(head, now), ready_at=head.ready_at)


class CancelDropsToken(Store):
    def _stopped(self, head: Head, status: Status, now: int, cascade: bool) -> Head:
        free = replace(head, lease_token=None, lease_expires_at=0)
        return super()._stopped(free, status, now, cascade)


class CancelDropsWakeAt(Store):
    def _stopped(self, head: Head, status: Status, now: int, cascade: bool) -> Head:
        return replace(super()._stopped(head, status, now, cascade), wake_at=None)


class CancelOfTheFinished(Store):
    def _may_stop(self, head: Head, generation: int) -> bool:
        return True


class NoMargin(Store):
    def _lease_is_over(self, head: Head, now: int) -> bool:
        return head.lease_expires_at < now


class LostIsNotCounted(Store):
    def _claimed(self, head: Head, token: str, now: int, until: int, lane: Lane) -> Head:
        return replace(super()._claimed(head, token, now, until, lane), lost_leases=0)


class KeyIsIgnored(Store):
    def _of_key(self, project: str, workflow: str, key: str) -> Head | None:
        return None


class LateExtendShortens(Store):
    def _may_extend(self, head: Head, token: str, until: int) -> bool:
        return self._holds(head, token) and head.live


class ExtendByAnybody(Store):
    def _may_extend(self, head: Head, token: str, until: int) -> bool:
        return head.live and head.lease_expires_at <= until


class OverdueIsForgotten(Store):
    def due(self, before: int, cursor: str | None, limit: int) -> tuple[list[Due], str | None]:
        page, following = super().due(before, cursor, limit)
        return [due for due in page if due.wake_at > before - 4 * MINUTE], following


# --- between the service and the store --------------------------------------------------------


class BlobsAfterTheHead(SimRuns):
    def commit(self, commit: Commit) -> Written:
        written = self._commit_head(commit, self._checks.in_hand(commit.run_id, commit.lease_token))
        if isinstance(written, Done):
            self._put_blobs(commit.run_id, commit.blobs)
        return written


class ClosingDropsBlobs(SimRuns):
    def close(self, run_id: str, token: str, commit: int, journal: bytes) -> Written:
        head = self._store.peek(run_id)
        base = head.created_at if head is not None else 0
        codec = JournalCodec(base, UNNAMED)
        packed = codec.pack(codec.decode(journal), token, commit)
        return super().close(run_id, token, commit, packed.data)


# --- the service ------------------------------------------------------------------------------


class DispatchFirst(LeasedRun):
    def _commit(self, decision: Decision, now: int, release: bool) -> bool:
        super()._dispatch(decision, now, release)
        return super()._commit(decision, now, release)

    def _dispatch(self, decision: Decision, now: int, release: bool) -> None:
        """It is done already."""


class NoDispatch(LeasedRun):
    def _dispatch(self, decision: Decision, now: int, release: bool) -> None:
        """The tick will find it."""


class DropsEarlyHints(Advance):
    def _claim(self, run_id: str, project: str, lane: Lane) -> Head | None:
        with suppress(NewerFormat):
            head = self._runs.get(run_id)
            if head is not None and head.ready_at > self._clock.now():
                return None
        return super()._claim(run_id, project, lane)


class NoClockCheck(LeasedRun):
    def _secure(self, needed: int, gate_expires_at: int | None = None) -> int | None:
        return self._tools.clock.now()


class OutcomeThenPosition(LeasedRun):
    def _commit(self, decision: Decision, now: int, release: bool) -> bool:
        before = self._committed.position
        if decision.journal.position > before and isinstance(decision.next, StartAttempts):
            half = replace(decision, journal=replace(decision.journal, position=before))
            if not super()._commit(half, now, release=False):
                return False
        return super()._commit(decision, now, release)


class ManyStepsInOneWrite(LeasedRun):
    def _unrecorded(self, decision: Decision) -> bool:
        return super()._unrecorded(decision) and not isinstance(decision.next, StartAttempts)


class RefusalForgetsTheOutcome(LeasedRun):
    def _refused(self, head: Head | None) -> bool:
        self._journal = self._committed
        self._uncommitted = []
        return super()._refused(head)


class SettlesTwice(LeasedRun):
    def _refused(self, head: Head | None) -> bool:
        tried, before = self._uncommitted, self._head.commit_seq
        goes_on = super()._refused(head)
        if goes_on and self._head.commit_seq != before:
            for one in tried:
                if isinstance(one.outcome, Succeeded):
                    begun = Record(one.attempt.step, StepStatus.RETRYING, one.attempt.number)
                    done = succeeded_record(begun, one.outcome.output, one.finished)
                    self._journal = finish_step(self._journal, done)
        return goes_on


class ClosesTooEarly(Advance):
    def _close(self, head: Head) -> None:
        super()._close(replace(head, lease_expires_at=0))


class HintBeforeCreate(Starts):
    def __init__(self, runs: Runs, workflows: Any, dispatcher: Dispatcher, *rest: Any) -> None:
        super().__init__(_Hinting(runs, dispatcher), workflows, _Silent(), *rest)


class _Hinting:
    def __init__(self, runs: Runs, dispatcher: Dispatcher) -> None:
        self._runs = runs
        self._dispatcher = dispatcher

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runs, name)

    def create(self, head: Head, blobs: Sequence[Blob] = ()) -> Written:
        self._dispatcher.hint(about_run(head.run_id, head.project))
        return self._runs.create(head, blobs)


class _Silent:
    def hint(self, subject: Subject, delay: int = 0, *, alone: bool = False) -> None:
        """It is sent already."""


# --- the step runners -------------------------------------------------------------------------


class LookupsDoNotCount(SimStepRunner):
    def _look_up(self, attempt: Attempt) -> int | None:
        super()._look_up(attempt)
        return None


class NoLookAtTheDeadline(SimStepRunner):
    def _look_up(self, attempt: Attempt) -> int | None:
        ends = super()._look_up(attempt)
        return None if ends is None else max(ends, self._links.scheduler.now + 1)


# --- the core ---------------------------------------------------------------------------------


def _no_deadline(*_: object) -> None:
    """A runner takes the step's timeout, from when it begins."""


def _governed_by_ready_at(arm: Any) -> Any:
    """An arm of decide that reads its time limit from the head."""

    def look(context: Any, step: Step, journal: Journal) -> Any:
        ends = context.head.ready_at
        opened = tuple(replace(record, next_at=ends) for record in journal.open)
        return arm(context, step, replace(journal, open=opened) if opened else journal)

    return look


def _attempts_by_ready_at(context: Any, journal: Journal, todo: Any) -> Any:
    ends = context.head.ready_at
    opened = tuple(replace(record, next_at=ends) for record in journal.open)
    return _ATTEMPT(context, replace(journal, open=opened) if opened else journal, todo)


def _waits_anew(context: Any, step: Step, journal: Journal) -> Any:
    """The time limit of a wait begins again with every look."""
    ends = context.now + step.timeout
    opened = tuple(replace(record, next_at=ends) for record in journal.open)
    return _WAIT(context, step, replace(journal, open=opened))


def _expires_blindly(*args: Any) -> Decision:
    return replace(deciding.decide(*args), absent=False)


_ATTEMPT = actions.attempt_all
_WAIT = waits.wait_for_signal
_DECIDE = "stepwell_engine.core.declared.decide."
_TIMES = (
    (_DECIDE + "sleep", _governed_by_ready_at(waits.sleep)),
    (_DECIDE + "wait_for_signal", _governed_by_ready_at(waits.wait_for_signal)),
    (_DECIDE + "attempt_all", _attempts_by_ready_at),
)


MUTATIONS: tuple[Mutation, ...] = (
    store("no lease-token condition", NoLeaseToken, 4),
    store("no commit_seq condition", NoCommitSeq, 1, 2, 5, 6),
    store("park without 'no new message'", NoInboxSeq, 3, 6),
    store("no live condition", NoLiveStatus, 1, 3, 10),
    store("no wake_at on a parked run", NoWakeAtOnPark, 3),
    store("release without wake_at", NoWakeAtOnRelease, 3),
    store("a consumed message stays", MessageStays, 6),
    store("a message leaves ready_at alone", MessageLeavesReadyAt, 3),
    store("cancel drops the lease token", CancelDropsToken, 4, 10),
    store("cancel drops wake_at", CancelDropsWakeAt, 3),
    store("cancel of a finished run", CancelOfTheFinished, 10),
    store("expired lease taken without margin", NoMargin, 4),
    store("lost workers are not counted", LostIsNotCounted, 5),
    store("idempotency key ignored", KeyIsIgnored, 8),
    store("late extend shortens the lease", LateExtendShortens, 4),
    store("extend by anybody", ExtendByAnybody, 4),
    store("tick forgets what is overdue", OverdueIsForgotten, 3),
    Mutation("blobs after the head", frozenset({1}), Engine(runs=BlobsAfterTheHead)),
    Mutation("closing drops blobs", frozenset({1}), Engine(runs=ClosingDropsBlobs)),
    leased_run("dispatch before commit", DispatchFirst, 3),
    Mutation("hint before create", frozenset({3}), Engine(starts=HintBeforeCreate)),
    leased_run("no dispatch", NoDispatch, 3),
    advance("early hints are not waited for", DropsEarlyHints, 3),
    leased_run("no clock check before an attempt", NoClockCheck, 4),
    Mutation("look-ups do not count", frozenset({4}), Engine(runner=LookupsDoNotCount)),
    Mutation("an effect after the deadline", frozenset({4}), Engine(runner=NoLookAtTheDeadline)),
    patch(
        "an attempt without a deadline",
        "stepwell_engine.service.worker.leased_run.deadline_of",
        _no_deadline,
        4,
    ),
    leased_run("outcome and position in two writes", OutcomeThenPosition, 2),
    leased_run("many steps in one write", ManyStepsInOneWrite, 2, 5),
    leased_run("a refusal forgets the outcome", RefusalForgetsTheOutcome, 5, 10),
    advance("closes while the lease is in force", ClosesTooEarly, 10),
    leased_run("settles twice", SettlesTwice, 1, 2, 5),
    Mutation("time limits read from ready_at", frozenset({2, 5, 6}), Engine(patches=_TIMES)),
    patch("a wait begins anew", _DECIDE + "wait_for_signal", _waits_anew, 2, 6),
    patch(
        "expiry without 'no new message'",
        "stepwell_engine.core.declared.program.decide",
        _expires_blindly,
        6,
    ),
    *STORED,
    *BRANCHES,
    *REFUSALS,
    *BLAME,
    *HINTS,
    *ENDINGS,
    *INBOX,
    *FORMATS,
    *STOPS,
)
