"""How far a run has come, as its reader sees it: a row per step, and how far it is undone.

What a worker has in hand is not stored: of a run with a lease in force, the actions that it would
try next are taken to be in flight.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from stepwell_engine.core.declared.actions import Action, at_once, by_due_time
from stepwell_engine.core.declared.compensate import ALL_COMPENSATED, compensations
from stepwell_engine.core.declared.definition import Definition, Kind, Step
from stepwell_engine.core.declared.kinds import ACTION_KINDS
from stepwell_engine.core.run.decision import ActionKey
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.service.runs.records import Records


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step, or its compensation, as a run's detail shows it.

    `parent` is the key of a child's fan-out. `output` is compact JSON, once it has been fetched.
    """

    step: Step
    record: Record
    parent: str | None = None
    output: bytes | None = None

    @property
    def child(self) -> str | None:
        """The latest run that a sub-workflow step started."""
        # While the record is pending that run may not exist yet.
        return None if self.record.status is StepStatus.PENDING else self.record.child


CompensationState = Literal["none", "compensating", "compensated", "failed", "incomplete"]


@dataclass(frozen=True, slots=True)
class Compensation:
    """How far a failed run is undone; `step` is the key at which the rollback stands."""

    state: CompensationState
    step: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """A run with everything recorded of it."""

    definition: Definition
    head: Head
    journal: Journal
    records: Records
    now: int

    @property
    def held(self) -> bool:
        """Whether a worker is at it right now, as far as the lease tells."""
        return self.head.lease_token is not None and self.head.lease_expires_at > self.now

    @property
    def over(self) -> bool:
        """Whether no step can begin any more; compensations may."""
        return self.journal.failure is not None or not self.head.live

    def current(self) -> Step | None:
        """The step at which a run stands; None behind the last, and once a step has failed it."""
        failure = self.journal.failure
        if failure is not None and failure.ordinal is not None:
            return None
        steps, index = self.definition.steps, self.journal.position
        return steps[index] if index < len(steps) else None

    def due(self) -> list[Action]:
        """The actions that are tried next, those that back off left out."""
        # A worker begins nothing once the run is cancelled.
        at = self.now if self.head.live else self.head.ended_at or self.now
        ready = [one for one in self.todo() if self._next_at(one) <= at]
        return by_due_time(self._record, ready)[: at_once(self.head)]

    def begun(self) -> dict[ActionKey, int]:
        """When the actions in flight began, where that can be told.

        A worker begins the first ones when it comes to them, and another one when an outcome makes
        room for it. That is not recorded of a failed attempt that is followed by another.
        """
        in_flight = self.due() if self.held else []
        if not in_flight:
            return {}
        owners, compensation = self.definition.owners, in_flight[0].compensation
        owner = owners[in_flight[0].step.ordinal]
        top = self.definition.steps[owner].ordinal
        since, beside = self.head.claimed_at, []
        for (ordinal, compensates), record in self.records.items():
            if compensates == compensation and owners[ordinal] == owner and ordinal != top:
                beside.append(record)
            else:
                since = max(since, record.finished_at or 0)
        ended = [(one.finished_at or since, one) for one in beside if not _before(one, since)]
        if any(one.finished_at is None or one.attempt > 1 for _, one in ended):
            return {}
        begun = [since] * at_once(self.head) + sorted(at for at, _ in ended)
        keys = sorted([one.action_key for _, one in ended] + [one.key for one in in_flight])
        return {one.key: begun[keys.index(one.key)] for one in in_flight}

    def todo(self) -> list[Action]:
        """The actions that are the run's turn: a step, a join's children, compensations."""
        compensation = self.journal.compensating
        if (
            self.journal.failure is not None
            and compensation is not None
            and compensation != ALL_COMPENSATED
        ):
            found = compensations(self.definition, self.journal, compensation)
        else:
            found = self._forward()
        return [one for one in found if not self._finished(one)]

    def _forward(self) -> list[Action]:
        step = self.current()
        if step is None or self.journal.failure is not None:
            return []
        if step.kind in ACTION_KINDS:
            return [Action(step)]
        if step.kind is Kind.JOIN:
            fanout = self.definition.steps[self.journal.position - 1]
            return [Action(child) for child in fanout.children]
        return []

    def _finished(self, action: Action) -> bool:
        record = self.records.get(action.key)
        return record is not None and record.finished_at is not None

    def _next_at(self, action: Action) -> int:
        record = self.records.get(action.key)
        return 0 if record is None else record.next_at or 0

    def _record(self, ordinal: int, compensation: bool) -> Record | None:
        return self.records.get((ordinal, compensation))


def _before(record: Record, at: int) -> bool:
    return record.finished_at is not None and record.finished_at < at


def iso(at: int) -> str:
    """A time in ms since the epoch as ISO 8601 in UTC: 2026-01-31T12:00:00.000Z."""
    moment = datetime.fromtimestamp(at // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at % 1000:03}Z"


def step_rows(run: Progress) -> Iterator[StepRow]:
    """The steps in definition order, children after their parent, a compensation after its step.

    Of a run that has failed or ended only those that it reached, with all children of a fan-out;
    compensations once it is their turn.
    """
    in_flight = {one.key for one in run.due()} if run.held else set()
    begun = run.begun()
    compensating = {one.key for one in run.todo() if one.compensation}
    for top in run.definition.steps:
        for step in (top, *top.children):
            parent = None if step is top else top.key
            record = run.records.get((step.ordinal, False))
            if record is not None or not run.over or _reached(run, top, step):
                blank = Record(step.ordinal, StepStatus.PENDING)
                yield StepRow(step, _shown(run, record or blank, in_flight, begun), parent)
            record = run.records.get((step.ordinal, True))
            if step.compensate is not None and (record or (step.ordinal, True) in compensating):
                blank = Record(step.ordinal, StepStatus.PENDING, compensation=True)
                yield StepRow(
                    step.compensate, _shown(run, record or blank, in_flight, begun), parent
                )


def _reached(run: Progress, top: Step, step: Step) -> bool:
    """Whether a run that is over came to a step of which nothing is recorded."""
    if step is top:
        return step is run.current()
    return (top.ordinal, False) in run.records


def _shown(
    run: Progress, record: Record, in_flight: set[ActionKey], begun: Mapping[ActionKey, int]
) -> Record:
    """The record as a reader sees it."""
    if record.finished_at is not None:
        return record
    if record.action_key in in_flight:
        return replace(
            record,
            status=StepStatus.RUNNING,
            attempt=record.attempt + 1,
            started_at=record.started_at or begun.get(record.action_key),
            next_at=None,
        )
    failure = run.journal.failure
    if run.head.live and (failure is None or record.compensation):
        return record
    # What was not finished when its run failed or ended does not go on.
    at = run.head.ended_at if failure is None or record.compensation else _failed_at(run)
    return replace(record, status=StepStatus.CANCELLED, finished_at=at, next_at=None)


def _failed_at(run: Progress) -> int | None:
    """When the step failed that the run fails of; when the run ended, if it was none."""
    failure = run.journal.failure
    ordinal = None if failure is None else failure.ordinal
    failed = None if ordinal is None else run.records.get((ordinal, False))
    return run.head.ended_at if failed is None else failed.finished_at


def compensation(run: Progress) -> Compensation:
    """How far a failed run is undone."""
    index = run.journal.compensating
    if index is None:
        return Compensation("none")
    if index == ALL_COMPENSATED:
        return Compensation("compensated" if run.head.status is Status.FAILED else "incomplete")
    step = run.definition.steps[index].key if index < len(run.definition.steps) else None
    if run.head.live:
        return Compensation("compensating", step)
    failure = run.journal.failure
    if run.head.status is Status.FAILED and failure is not None and failure.stuck:
        return Compensation("failed", _stuck(run) or step)
    return Compensation("incomplete", step)


def _stuck(run: Progress) -> str | None:
    """The key of the step that could not be undone."""
    failed = [
        run.definition.flat[ordinal].key
        for (ordinal, compensation), record in run.records.items()
        if compensation and record.status is StepStatus.FAILED
    ]
    return failed[0] if failed else None


def last_error(head: Head, journal: Journal) -> str | None:
    """What a run failed of, or what the latest attempt of a live run's current step failed of."""
    if journal.failure is not None:
        return journal.failure.message
    opened = journal.open if head.live else ()
    return next((record.error for record in opened if record.error), None)
