"""Defects in fan-outs, sub-workflows, keyed signals and rollbacks."""

from dataclasses import replace
from typing import Any

from stepwell_engine.core import compensate, fanout, subworkflow, transitions
from stepwell_engine.core import decide as deciding
from stepwell_engine.core.definition import Definition, Step
from stepwell_engine.core.instructions import Decision, Launch
from stepwell_engine.core.journal import Failure, Journal, Record
from stepwell_engine.core.outcome import Act, Failed, NotTried
from stepwell_engine.core.run import Blob, Head, Mail, Status, StepStatus
from stepwell_engine.core.subworkflow import ChildResult, begin_child, child_started
from stepwell_engine.core.transitions import record_open, retrying_record
from stepwell_engine.errors import StoreError
from stepwell_engine.ports import Commit, Delivered, Refused
from stepwell_engine.service.advance import Advance
from stepwell_engine.service.children import Children
from stepwell_engine.service.hold import Hold
from tests.sim.mutation import Mutation, advance, children, hold, patch, store
from tests.sim.ports import Store
from tests.sim.world import Engine

# --- the store --------------------------------------------------------------------------------


class NoDebtAtTheEnd(Store):
    def _committed(self, head: Head, commit: Commit) -> Head:
        wake_at = None if commit.owes else commit.wake_at
        return super()._committed(head, replace(commit, owes=False, wake_at=wake_at))


class NoDebtAtTheCancel(Store):
    def _cancelled(self, head: Head, now: int, cascade: bool) -> Head:
        kept = None if head.token is None else head.wake_at
        return replace(super()._cancelled(head, now, cascade), owes=False, wake_at=kept)


class CommitForgetsTheDebt(Store):
    def _wake_at(self, head: Head, commit: Commit) -> int | None:
        return super()._wake_at(replace(head, owes=False), commit)


class CloseForgetsTheDebt(Store):
    def _closed(self, head: Head, journal: bytes) -> Head:
        return replace(super()._closed(head, journal), wake_at=None)


class NoKeysOfSignals(Store):
    def deliver(
        self,
        run_id: str,
        mail_id: str,
        mail: Mail,
        now: int,
        blob: Blob | None,
        key: str | None = None,
    ) -> Delivered | Refused:
        return super().deliver(run_id, mail_id, mail, now, blob)


# --- a worker ---------------------------------------------------------------------------------


class UndoneThenCursor(Hold):
    def _commit(self, decision: Decision, now: int, release: bool) -> bool:
        before, after = self._committed, decision.journal
        if before.undo is not None and (before.undo, before.undone) != (after.undo, after.undone):
            half = replace(after, undo=before.undo, undone=before.undone)
            if not super()._commit(replace(decision, journal=half), now, release=False):
                return False
        return super()._commit(decision, now, release)


class StartsUnrecordedChildren(Hold):
    def _launch(self, decision: Decision, launch: Launch, now: int) -> bool:
        if launch.child is not None:
            return super()._launch(decision, launch, now)
        step, child = self._definition.flat[launch.ordinal], self._tools.ids.run_id()
        begun = begin_child(step, decision.journal, launch.attempt, child, now)
        self._tools.children.launch(self._head, step, child)
        self._journal = child_started(step, begun)
        return True


class ActsBeforeItRecords(Hold):
    def _unrecorded(self, decision: Decision) -> bool:
        return super()._unrecorded(decision) and not self._flying


class NeverLooks(Hold):
    def _turn(self) -> bool:
        self._waited = False
        return super()._turn()


class CancelWaitsForNothing(Hold):
    def _record_cancelled(self, head: Head) -> None:
        self._flying = set()
        super()._record_cancelled(head)


# --- between parents and children -------------------------------------------------------------


class AbandonsWithoutCancel(Children):
    def abandon(self, child: str, now: int) -> ChildResult:
        return ChildResult(Status.CANCELLED, now)


class GivesUpForSomebody(Children):
    def abandon(self, child: str, now: int) -> ChildResult:
        result = super().abandon(child, now)
        return replace(result, ended_at=0) if result.status is Status.CANCELLED else result


class PaysBeforeItTells(Children):
    def pay(self, head: Head) -> None:
        if head.owes:
            self._runs.paid(head.run_id)
        super().pay(head)


class TellsAndCancelsNobody(Children):
    def pay(self, head: Head) -> None:
        super().pay(replace(head, cascade=False))


class TakesNothingBack(Children):
    def take_back(self, journal: Journal) -> None:
        """The child goes on."""


class ForgetsWhatItStarted(Children):
    def launch(self, parent: Head, step: Step, child: str) -> Failed | None:
        runs = self._runs
        self._runs = _Blind(runs)
        try:
            return super().launch(parent, step, child)
        finally:
            self._runs = runs


class _Blind:
    def __init__(self, runs: Any) -> None:
        self._runs = runs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runs, name)

    def get(self, run_id: str) -> Head | None:
        return None


class TakesSilenceForAnAnswer(Advance):
    def _definition(self, head: Head) -> Definition:
        try:
            return super()._definition(head)
        except StoreError as error:
            raise ValueError(str(error)) from error


class DebtsOfTheDead(Advance):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._children = _Ungrateful(self._children)  # type: ignore[assignment]


class _Ungrateful:
    def __init__(self, family: Children) -> None:
        self._family = family

    def __getattr__(self, name: str) -> Any:
        return getattr(self._family, name)

    def pay(self, head: Head) -> None:
        """Only who ended the run tells of it."""


class ClosesBeforeItPays(Advance):
    """No defect with a store that keeps the debt's wake_at."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._children = _Closing(self._children, self)  # type: ignore[assignment]


class _Closing(_Ungrateful):
    def __init__(self, family: Children, worker: Advance) -> None:
        super().__init__(family)
        self._worker = worker

    def pay(self, head: Head) -> None:
        self._worker._close(head)
        self._family.pay(head)


# --- the core ---------------------------------------------------------------------------------


def _holds_nothing(*args: Any) -> Decision:
    return replace(deciding.decide(*args), hold=False)


def _takes_any_news(scene: Any, step: Step, journal: Journal) -> Any:
    opened = journal.opened(step.ordinal)
    news = [letter for letter in scene.mail.values() if letter.kind == "child"]
    if opened is None or opened.child is None or not news:
        return _SUBWORKFLOW(scene, step, journal)
    mail = {**scene.mail, opened.child: news[0]}
    return _SUBWORKFLOW(replace(scene, mail=mail), step, journal)


def _undoes_the_failed(scene: Any, journal: Journal, failure: Failure) -> Any:
    if journal.undo is None and failure.ordinal is not None:
        journal = replace(journal, undo=journal.position)
    return _UNWIND(scene, journal, failure)


def _counts_as_done(definition: Definition, journal: Journal, failed: Record) -> Journal:
    if failed.undo:
        return _FINISH_COMPENSATION(definition, journal, failed)
    return _RECORD_FAILURE(definition, journal, failed)


def _undoes_every_other(definition: Definition, journal: Journal, record: Record) -> Journal:
    after = _FINISH_COMPENSATION(definition, journal, record)
    moved = after.undo is not None and after.undo != journal.undo
    return replace(after, undo=max(-1, (after.undo or 0) - 1)) if moved else after


def _costs_an_attempt(
    journal: Journal, act: Act, outcome: NotTried, started: int, now: int
) -> Journal:
    failed = Failed(outcome.message)
    begun = journal.opened(act.ordinal, act.undo) or Record(
        act.ordinal, StepStatus.RETRYING, undo=act.undo
    )
    begun = replace(begun, attempt=act.attempt, started_at=started)
    return record_open(journal, retrying_record(begun, failed, now))


def _always(*_: object) -> bool:
    return True


def _never_siblings(journal: Journal, index: int, top: Step, step: Step) -> bool:
    return _SUCCEEDED(journal, index, top, step) and (step is top or index != journal.position - 1)


def _last_is_done(parent: Step, child: Step, journal: Journal) -> bool:
    return child is parent.children[-1] or _IS_DONE(parent, child, journal)


def _as_it_was(head: Head, **_: object) -> Head:
    return head


def _nothing(*_: object) -> tuple[()]:
    return ()


def _none(*_: object) -> None:
    return None


_CORE = "stepwell_engine.core."
_SUBWORKFLOW = subworkflow.subworkflow
_UNWIND = compensate.unwind
_FINISH_COMPENSATION = compensate.finish_compensation
_SUCCEEDED = compensate._succeeded
_IS_DONE = fanout.is_done
_RECORD_FAILURE = transitions.record_failure
_NEVER_STUCK = (
    (_CORE + "settle.record_failure", _counts_as_done),
    (_CORE + "effects.record_failure", _counts_as_done),
    (_CORE + "compensate._failed_compensation", _none),
)
_ANY_NEWS = (
    (_CORE + "decide.subworkflow", _takes_any_news),
    (_CORE + "decide._stale", _nothing),
)

BRANCHES: tuple[Mutation, ...] = (
    store("no debt at the end", NoDebtAtTheEnd, 3),
    store("no debt at the cancel", NoDebtAtTheCancel, 3),
    store("a commit takes the debt's wake_at", CommitForgetsTheDebt, 3),
    Mutation(
        "closing takes the debt's wake_at",
        frozenset({3}),
        Engine(store=CloseForgetsTheDebt, advance=ClosesBeforeItPays),
    ),
    store("keys of signals ignored", NoKeysOfSignals, 6),
    hold("undone and cursor in two writes", UndoneThenCursor, 9),
    hold("a child is started before it is recorded", StartsUnrecordedChildren, 9),
    hold("acts before it records what made room", ActsBeforeItRecords, 5),
    hold("never looks for a cancel between acts", NeverLooks, 10),
    hold("a cancel does not wait for acts in flight", CancelWaitsForNothing, 4, 5, 10),
    children("a child that is given up runs on", AbandonsWithoutCancel, 9),
    children("a child that was given up counts as cancelled", GivesUpForSomebody, 9),
    children("paid before told", PaysBeforeItTells, 3),
    children("a cascade stops at the first run", TellsAndCancelsNobody, 10),
    children("a start that a cancel overtook stays", TakesNothingBack, 10),
    children("a child that is there counts as not started", ForgetsWhatItStarted, 9),
    advance("debts of the dead are forgotten", DebtsOfTheDead, 3),
    advance("a definition that cannot be read now fails the run", TakesSilenceForAnAnswer, 2),
    patch(
        "a failed child is recorded beside acts in flight",
        "stepwell_engine.service.hold.decide",
        _holds_nothing,
        2,
        9,
    ),
    Mutation("news of any child taken", frozenset({9}), Engine(patches=_ANY_NEWS)),
    patch("what did not happen costs an attempt", _CORE + "settle._put_off", _costs_an_attempt, 5),
    patch("nine acts at once", "stepwell_engine.limits.CHILDREN_AT_ONCE", 9, 4),
    patch("seven runs deep", "stepwell_engine.limits.MAX_DEPTH", 6, 9),
    patch("the failed step is undone", _CORE + "decide.unwind", _undoes_the_failed, 9),
    patch("children that failed are undone", _CORE + "compensate._succeeded", _always, 9),
    patch("siblings are not undone", _CORE + "compensate._succeeded", _never_siblings, 9),
    patch(
        "every other step is undone", _CORE + "settle.finish_compensation", _undoes_every_other, 9
    ),
    Mutation("a rollback that is stuck goes on", frozenset({9}), Engine(patches=_NEVER_STUCK)),
    patch("a lost step's losses count on", _CORE + "decide.replace", _as_it_was, 5),
    patch("a join does not wait for the last", _CORE + "fanout.is_done", _last_is_done, 2),
)
