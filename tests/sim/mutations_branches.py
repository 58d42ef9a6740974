"""Defects in fan-outs, sub-workflows, keyed signals and compensations."""

from dataclasses import replace
from typing import Any

from stepwell_engine.adapters.delivery import KeyEntry
from stepwell_engine.core.declared import compensate, fanout, subworkflow, transitions
from stepwell_engine.core.declared import decide as deciding
from stepwell_engine.core.declared.definition import Definition, Step
from stepwell_engine.core.run.attempt import Attempt, Deferred, Failed
from stepwell_engine.core.run.child import ChildNamed, ChildResult, ChildStarted
from stepwell_engine.core.run.decision import Decision, StartChild
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Failure, Journal
from stepwell_engine.core.run.program import Program
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.core.run.transitions import record_open, retrying_record
from stepwell_engine.errors import StoreError
from stepwell_engine.ports import Commit
from stepwell_engine.service.runs.children import Awaited, Children
from stepwell_engine.service.worker.advance import Advance
from stepwell_engine.service.worker.leased_run import LeasedRun
from tests.sim.links import Store
from tests.sim.mutation import Mutation, advance, children, leased_run, patch, store
from tests.sim.world import Engine

# --- the store --------------------------------------------------------------------------------


class NoNotifyAtTheEnd(Store):
    def _committed(self, head: Head, commit: Commit) -> Head:
        wake_at = None if commit.notify_pending else commit.wake_at
        return super()._committed(head, replace(commit, notify_pending=False, wake_at=wake_at))


class NoNotifyAtTheCancel(Store):
    def _stopped(self, head: Head, status: Status, now: int, cascade: bool) -> Head:
        kept = None if head.lease_token is None else head.wake_at
        stopped = super()._stopped(head, status, now, cascade)
        return replace(stopped, notify_pending=False, wake_at=kept)


class CommitForgetsToNotify(Store):
    def _wake_at(self, head: Head, commit: Commit) -> int | None:
        return super()._wake_at(replace(head, notify_pending=False), commit)


class CloseForgetsToNotify(Store):
    def _closed(self, head: Head, journal: bytes) -> Head:
        return replace(super()._closed(head, journal), wake_at=None)


class NoKeysOfSignals(Store):
    def key_entry(self, run_id: str, key: str) -> KeyEntry | None:
        return None

    def put_key(
        self, run_id: str, key: str, entry: KeyEntry, instead: KeyEntry | None = None
    ) -> KeyEntry | None:
        return None


# --- a worker ---------------------------------------------------------------------------------


class CompensatedThenPosition(LeasedRun):
    def _commit(self, decision: Decision, now: int, release: bool) -> bool:
        before, after = self._committed, decision.journal
        if before.compensating is not None and (
            before.compensating,
            before.children_compensated,
        ) != (after.compensating, after.children_compensated):
            half = replace(
                after,
                compensating=before.compensating,
                children_compensated=before.children_compensated,
            )
            if not super()._commit(replace(decision, journal=half), now, release=False):
                return False
        return super()._commit(decision, now, release)


class StartsUnrecordedChildren(LeasedRun):
    def _start_child(self, decision: Decision, start: StartChild, now: int) -> bool:
        if start.child is not None:
            return super()._start_child(decision, start, now)
        child = self._tools.ids.run_id()
        begun = self._program.settle_child(decision.journal, ChildNamed(start, child), now)
        self._tools.children.start(self._head, start, child)
        self._journal = self._program.settle_child(begun, ChildStarted(start), now)
        return True


class StartsBeforeItRecords(LeasedRun):
    def _unrecorded(self, decision: Decision) -> bool:
        return super()._unrecorded(decision) and not self._in_flight


class NeverLooks(LeasedRun):
    def _advance_once(self) -> bool:
        self._waited = False
        return super()._advance_once()


class CancelWaitsForNothing(LeasedRun):
    def _record_stopped(self, head: Head) -> None:
        self._in_flight = set()
        super()._record_stopped(head)


# --- between parents and children -------------------------------------------------------------


class GivesUpWithoutCancel(Children):
    def cancel(self, child: str, now: int) -> ChildResult:
        return ChildResult(Status.CANCELLED, now)


class GivesUpForSomebody(Children):
    def cancel(self, child: str, now: int) -> ChildResult:
        result = super().cancel(child, now)
        return replace(result, ended_at=0) if result.status is Status.CANCELLED else result


class MarksBeforeItNotifies(Children):
    def notify(self, head: Head) -> None:
        if head.notify_pending:
            self._runs.mark_notified(head.run_id)
        super().notify(head)


class CascadeStopsAtTheFirst(Children):
    def notify(self, head: Head) -> None:
        super().notify(replace(head, cascade=False))


class BeginsUnasked(Children):
    def awaited(self, child: Head) -> Awaited:
        return Awaited.YES


class BeginsTooEarly(Children):
    def awaited(self, child: Head) -> Awaited:
        awaited = super().awaited(child)
        return Awaited.YES if awaited is Awaited.NOT_YET else awaited


class TakesSilenceForAnAnswer(Advance):
    def _program(self, head: Head) -> Program:
        try:
            return super()._program(head)
        except StoreError as error:
            raise ValueError(str(error)) from error


class NobodyNotifiesForTheEnded(Advance):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._children = _NeverNotifies(self._children)  # type: ignore[assignment]


class _NeverNotifies:
    def __init__(self, children: Children) -> None:
        self._given = children

    def __getattr__(self, name: str) -> Any:
        return getattr(self._given, name)

    def notify(self, head: Head) -> None:
        """Only the worker that ended the run notifies."""


class ClosesBeforeItNotifies(Advance):
    """No defect with a store that keeps the wake_at of a pending notification."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._children = _Closing(self._children, self)  # type: ignore[assignment]


class _Closing(_NeverNotifies):
    def __init__(self, children: Children, worker: Advance) -> None:
        super().__init__(children)
        self._worker = worker

    def notify(self, head: Head) -> None:
        self._worker._close(head)
        self._given.notify(head)


# --- the core ---------------------------------------------------------------------------------


def _never_waits_for_siblings(*args: Any) -> Decision:
    return replace(deciding.decide(*args), hold=False)


def _takes_any_message(context: Any, step: Step, journal: Journal) -> Any:
    opened = journal.opened(step.key)
    messages = [message for message in context.inbox.values() if message.kind == "child"]
    if opened is None or opened.child is None or not messages:
        return _SUBWORKFLOW(context, step, journal)
    inbox = {**context.inbox, opened.child: messages[0]}
    return _SUBWORKFLOW(replace(context, inbox=inbox), step, journal)


def _compensates_the_failed(context: Any, journal: Journal, failure: Failure) -> Any:
    if journal.compensating is None and failure.step is not None:
        journal = replace(journal, compensating=journal.position)
    return _COMPENSATE(context, journal, failure)


def _counts_as_done(definition: Definition, journal: Journal, failed: Record) -> Journal:
    if failed.key in definition.compensations:
        return _FINISH_COMPENSATION(definition, journal, failed)
    return _RECORD_FAILURE(definition, journal, failed)


def _compensates_every_other(definition: Definition, journal: Journal, record: Record) -> Journal:
    after = _FINISH_COMPENSATION(definition, journal, record)
    moved = after.compensating is not None and after.compensating != journal.compensating
    return replace(after, compensating=max(-1, (after.compensating or 0) - 1)) if moved else after


def _costs_an_attempt(
    journal: Journal, attempt: Attempt, outcome: Deferred, started: int, now: int
) -> Journal:
    failed = Failed(outcome.message)
    begun = journal.opened(attempt.step) or Record(attempt.step, StepStatus.RETRYING)
    begun = replace(begun, attempt=attempt.number, started_at=started)
    return record_open(journal, retrying_record(begun, failed, now))


def _always(*_: object) -> bool:
    return True


def _never_siblings(journal: Journal, index: int, top: Step, step: Step) -> bool:
    return _SUCCEEDED(journal, index, top, step) and (step is top or index != journal.position - 1)


def _last_is_done(parent: Step, child: Step, journal: Journal) -> bool:
    return child is parent.children[-1] or _IS_DONE(parent, child, journal)


def _nothing(*_: object) -> tuple[()]:
    return ()


def _none(*_: object) -> None:
    return None


_CORE = "stepwell_engine.core.declared."
_SUBWORKFLOW = subworkflow.subworkflow
_COMPENSATE = compensate.compensate
_FINISH_COMPENSATION = compensate.finish_compensation
_SUCCEEDED = compensate._succeeded
_IS_DONE = fanout.is_done
_RECORD_FAILURE = transitions.record_failure
_NEVER_STUCK = (
    (_CORE + "settle.record_failure", _counts_as_done),
    (_CORE + "transitions.record_failure", _counts_as_done),
    (_CORE + "compensate._failed_compensation", _none),
)
_ANY_MESSAGE = (
    (_CORE + "decide.subworkflow", _takes_any_message),
    (_CORE + "decide._stale", _nothing),
)

BRANCHES: tuple[Mutation, ...] = (
    store("no notification pending at the end", NoNotifyAtTheEnd, 3),
    store("no notification pending at the cancel", NoNotifyAtTheCancel, 3),
    store("a commit drops a pending notification's wake_at", CommitForgetsToNotify, 3),
    Mutation(
        "closing drops a pending notification's wake_at",
        frozenset({3}),
        Engine(store=CloseForgetsToNotify, advance=ClosesBeforeItNotifies),
    ),
    store("keys of signals ignored", NoKeysOfSignals, 6),
    leased_run("compensated and cursor in two writes", CompensatedThenPosition, 9),
    leased_run("a child is started before it is recorded", StartsUnrecordedChildren, 9),
    leased_run("starts an attempt before it records what made room", StartsBeforeItRecords, 5),
    leased_run("never looks for a cancel between attempts", NeverLooks, 10),
    leased_run("a cancel does not wait for attempts in flight", CancelWaitsForNothing, 3, 4, 5, 10),
    children("a child that is given up runs on", GivesUpWithoutCancel, 9),
    children("a child that was given up counts as cancelled", GivesUpForSomebody, 9),
    children("marked as notified before the parent is", MarksBeforeItNotifies, 3),
    children("a cascade stops at the first run", CascadeStopsAtTheFirst, 10),
    children("a child begins although it was given up", BeginsUnasked, 9),
    children("a child begins before it is waited for", BeginsTooEarly, 9),
    advance("pending notifications of ended runs are forgotten", NobodyNotifiesForTheEnded, 3),
    advance("a definition that cannot be read now fails the run", TakesSilenceForAnAnswer, 2),
    patch(
        "a failed child is recorded beside attempts in flight",
        "stepwell_engine.core.declared.program.decide",
        _never_waits_for_siblings,
        2,
        5,
        9,
    ),
    Mutation("the message of any child is taken", frozenset({9}), Engine(patches=_ANY_MESSAGE)),
    patch("a deferred attempt costs one", _CORE + "settle._defer", _costs_an_attempt, 5),
    patch("nine attempts at once", "stepwell_engine.limits.CHILDREN_AT_ONCE", 9, 4),
    patch("seven runs deep", "stepwell_engine.limits.MAX_DEPTH", 6, 9),
    patch(
        "the failed step is compensated", _CORE + "decide.compensate", _compensates_the_failed, 9
    ),
    patch("children that failed are compensated", _CORE + "compensate._succeeded", _always, 9),
    patch("siblings are not compensated", _CORE + "compensate._succeeded", _never_siblings, 9),
    patch(
        "every other step is compensated",
        _CORE + "settle.finish_compensation",
        _compensates_every_other,
        9,
    ),
    Mutation("a compensation that is stuck goes on", frozenset({9}), Engine(patches=_NEVER_STUCK)),
    patch("a join does not wait for the last", _CORE + "fanout.is_done", _last_is_done, 2),
)
