"""How far a declared run has come, as its reader sees it: a row per step, and its compensation.

What a worker has in hand is not stored: of a run with a lease in force, the actions that it would
try next are taken to be in flight.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace

from stepwell_engine.core.declared.actions import at_once, by_due_time
from stepwell_engine.core.declared.compensate import ALL_COMPENSATED, compensations
from stepwell_engine.core.declared.definition import Definition, Kind, Step
from stepwell_engine.core.declared.kinds import ACTION_KINDS, KINDS
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.keys import StepKey
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.core.run.view import Compensation, Records, StepRow


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
        return self.head.held(self.now)

    @property
    def over(self) -> bool:
        """Whether no step can begin any more; compensations may."""
        return self.journal.failure is not None or not self.head.live

    def current(self) -> Step | None:
        """The step at which a run stands; None behind the last, and once a step has failed it."""
        failure = self.journal.failure
        if failure is not None and failure.step is not None:
            return None
        steps, index = self.definition.steps, self.journal.position
        return steps[index] if index < len(steps) else None

    def due(self) -> list[Step]:
        """The actions that are tried next, those that back off left out."""
        # A worker begins nothing once the run is cancelled.
        at = self.now if self.head.live else self.head.ended_at or self.now
        ready = [one for one in self.todo() if self._next_at(one) <= at]
        return by_due_time(self.records.get, ready)[: at_once(self.head)]

    def begun(self) -> dict[StepKey, int]:
        """When the actions in flight began, where that can be told.

        A worker begins the first ones when it comes to them, and another one when an outcome makes
        room for it. That is not recorded of a failed attempt that is followed by another.
        """
        in_flight = self.due() if self.held else []
        if not in_flight:
            return {}
        definition = self.definition
        owner = definition.owner(in_flight[0].key)
        compensates = in_flight[0].key in definition.compensations
        since, beside = self.head.claimed_at, []
        for key, record in self.records.items():
            sibling = (
                (key in definition.compensations) == compensates
                and definition.owner(key) == owner
                and definition.by_key[key].ordinal != definition.steps[owner].ordinal
            )
            if sibling:
                beside.append(record)
            else:
                since = max(since, record.finished_at or 0)
        ended = [(one.finished_at or since, one) for one in beside if not _before(one, since)]
        if any(one.finished_at is None or one.attempt > 1 for _, one in ended):
            return {}
        begun = [since] * at_once(self.head) + sorted(at for at, _ in ended)
        keys = [one.key for _, one in ended] + [step.key for step in in_flight]
        keys.sort(key=lambda key: definition.by_key[key].ordinal)
        return {step.key: begun[keys.index(step.key)] for step in in_flight}

    def todo(self) -> list[Step]:
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

    def _forward(self) -> list[Step]:
        step = self.current()
        if step is None or self.journal.failure is not None:
            return []
        if step.kind in ACTION_KINDS:
            return [step]
        if step.kind is Kind.JOIN:
            fanout = self.definition.steps[self.journal.position - 1]
            return list(fanout.children)
        return []

    def _finished(self, step: Step) -> bool:
        record = self.records.get(step.key)
        return record is not None and record.finished_at is not None

    def _next_at(self, step: Step) -> int:
        record = self.records.get(step.key)
        return 0 if record is None else record.next_at or 0


def _before(record: Record, at: int) -> bool:
    return record.finished_at is not None and record.finished_at < at


def step_rows(run: Progress) -> Iterator[StepRow]:
    """The steps in definition order, children after their parent, a compensation after its step.

    Of a run that has failed or ended only those that it reached, with all children of a fan-out;
    compensations once it is their turn.
    """
    in_flight = {step.key for step in run.due()} if run.held else set()
    begun = run.begun()
    compensating = {step.key for step in run.todo() if step.key in run.definition.compensations}
    for top in run.definition.steps:
        for step in (top, *top.children):
            parent = None if step is top else top.key
            record = run.records.get(step.key)
            if record is not None or not run.over or _reached(run, top, step):
                shown = _shown(run, record or blank(step), in_flight, begun)
                yield _row(step, shown, parent)
            if step.compensate is None:
                continue
            record = run.records.get(step.compensate.key)
            if record is not None or step.compensate.key in compensating:
                shown = _shown(run, record or blank(step.compensate), in_flight, begun)
                row = _row(step.compensate, shown, parent)
                yield replace(row, place=row.place + 1, compensating=True)


def blank(step: Step) -> Record:
    """The record of a step of which nothing is recorded."""
    return Record(step.key, StepStatus.PENDING)


def _row(step: Step, record: Record, parent: StepKey | None) -> StepRow:
    return StepRow(
        # In definition order, a compensation right after its step.
        place=2 * step.ordinal,
        key=step.key,
        kind=step.kind,
        record=record,
        max_attempts=step.max_attempts if "max_attempts" in KINDS[step.kind].fields else 1,
        parent=parent,
        starts_run=step.kind is Kind.SUBWORKFLOW,
    )


def _reached(run: Progress, top: Step, step: Step) -> bool:
    """Whether a run that is over came to a step of which nothing is recorded."""
    if step is top:
        return step is run.current()
    return top.key in run.records


def _shown(
    run: Progress, record: Record, in_flight: Set[StepKey], begun: Mapping[StepKey, int]
) -> Record:
    """The record as a reader sees it."""
    if record.finished_at is not None:
        return record
    if record.key in in_flight:
        return replace(
            record,
            status=StepStatus.RUNNING,
            attempt=record.attempt + 1,
            started_at=record.started_at or begun.get(record.key),
            next_at=None,
        )
    failure = run.journal.failure
    compensates = record.key in run.definition.compensations
    if run.head.live and (failure is None or compensates):
        return record
    # What was not finished when its run failed or ended does not go on.
    at = run.head.ended_at if failure is None or compensates else _failed_at(run)
    return replace(record, status=StepStatus.CANCELLED, finished_at=at, next_at=None)


def _failed_at(run: Progress) -> int | None:
    """When the step failed that the run fails of; when the run ended, if it was none."""
    failure = run.journal.failure
    key = None if failure is None else failure.step
    failed = None if key is None else run.records.get(key)
    return run.head.ended_at if failed is None else failed.finished_at


def compensation(run: Progress) -> Compensation:
    """How far a failed run is compensated."""
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


def _stuck(run: Progress) -> StepKey | None:
    """The key of the step that could not be compensated."""
    steps, compensations_ = run.definition.flat, run.definition.compensations
    return next(
        (
            steps[compensations_[key].ordinal].key
            for key, record in run.records.items()
            if key in compensations_ and record.status is StepStatus.FAILED
        ),
        None,
    )
