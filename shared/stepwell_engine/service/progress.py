"""How far a run has come, as its reader sees it: a row per step, and why it is not moving."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from stepwell_engine import limits
from stepwell_engine.core.compensate import ALL_UNDONE, compensations
from stepwell_engine.core.definition import ACTION_KINDS, Definition, Kind, Step
from stepwell_engine.core.effects import Effect
from stepwell_engine.core.journal import Journal, Record
from stepwell_engine.core.run import Head, Status, StepStatus
from stepwell_engine.service.records import Records


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step, or its compensation, as a run's detail shows it.

    `parent` is the key of a child's fan-out. `output` is compact JSON, once it has been fetched.
    """

    step: Step
    record: Record
    parent: str | None = None
    output: bytes | None = None


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
        return self.head.token is not None and self.head.until > self.now

    def current(self) -> Step | None:
        """The step at which a run stands; None behind the last, and once the run has failed."""
        if self.journal.failure is not None or self.journal.position >= len(self.definition.steps):
            return None
        return self.definition.steps[self.journal.position]

    def due(self) -> list[Effect]:
        """The actions that are the run's turn now, those that back off left out."""
        return [one for one in self.todo() if self._next_at(one) <= self.now][
            : limits.CHILDREN_AT_ONCE
        ]

    def todo(self) -> list[Effect]:
        """The actions that are the run's turn: a step, a join's children, compensations."""
        undo = self.journal.undo
        if self.journal.failure is not None and undo is not None and undo != ALL_UNDONE:
            found = compensations(self.definition, self.journal, undo)
        else:
            found = self._forward()
        return [one for one in found if not self._finished(one)]

    def _forward(self) -> list[Effect]:
        step = self.current()
        if step is None:
            return []
        if step.kind in ACTION_KINDS:
            return [Effect(step)]
        if step.kind is Kind.JOIN:
            fanout = self.definition.steps[self.journal.position - 1]
            return [Effect(child) for child in fanout.children]
        return []

    def _finished(self, effect: Effect) -> bool:
        record = self.records.get(effect.key)
        return record is not None and record.finished_at is not None

    def _next_at(self, effect: Effect) -> int:
        record = self.records.get(effect.key)
        return 0 if record is None else record.next_at or 0


def iso(at: int) -> str:
    """A time in ms since the epoch as ISO 8601 in UTC: 2026-01-31T12:00:00.000Z."""
    moment = datetime.fromtimestamp(at // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at % 1000:03}Z"


def step_rows(run: Progress) -> Iterator[StepRow]:
    """The steps in definition order, children after their parent, a compensation after its step.

    Of a run that has ended, only those that it reached.
    """
    flying = {one.key for one in run.due()} if run.held else set()
    for top in run.definition.steps:
        for step in (top, *top.children):
            parent = None if step is top else top.key
            record = _shown(run, run.records.get((step.ordinal, False)), step, flying)
            if record is not None:
                yield StepRow(step, record, parent)
            undone = run.records.get((step.ordinal, True))
            if step.compensate is not None and (undone or (step.ordinal, True) in flying):
                blank = Record(step.ordinal, StepStatus.PENDING, undo=True)
                shown = _shown(run, undone or blank, step, flying)
                yield StepRow(step.compensate, shown or blank, parent)


def _shown(
    run: Progress, record: Record | None, step: Step, flying: set[tuple[int, bool]]
) -> Record | None:
    """The record as a reader sees it; None for a step that an ended run never reached."""
    key = (step.ordinal, False) if record is None else record.effect
    if key in flying:
        record = record or Record(step.ordinal, StepStatus.RUNNING)
        return replace(record, status=StepStatus.RUNNING, attempt=record.attempt + 1)
    if record is not None and record.finished_at is not None:
        return record
    stands_here = step is run.current() or _never_started(run, step)
    ended = not run.head.live or (record is None and _never_started(run, step))
    if not ended:
        return record or Record(step.ordinal, StepStatus.PENDING)
    if record is None and not stands_here:
        return None
    record = record or Record(step.ordinal, StepStatus.CANCELLED)
    at = run.head.ended_at
    return replace(record, status=StepStatus.CANCELLED, finished_at=at, next_at=None)


def _never_started(run: Progress, step: Step) -> bool:
    """Whether a child of the fan-out that failed, or was cancelled, will never start."""
    index = run.definition.owners[step.ordinal]
    is_child = run.definition.steps[index] is not step
    over = run.journal.failure is not None or not run.head.live
    return is_child and over and index == run.journal.position - 1


def compensation_state(run: Progress) -> str:
    """none, compensating, compensated, failed or incomplete."""
    journal = run.journal
    if journal.undo is None:
        return "none"
    if run.head.live:
        return "compensating"
    if run.head.status is Status.FAILED and journal.undo == ALL_UNDONE:
        return "compensated"
    stuck = journal.failure is not None and journal.failure.stuck
    return "failed" if run.head.status is Status.FAILED and stuck else "incomplete"


def reason(run: Progress) -> str | None:
    """Why a live run is not moving, in words; None for one that has ended."""
    head = run.head
    if not head.live:
        return None
    if head.token is not None and head.until <= run.now:
        return "its worker was lost: another one takes over within a minute or two"
    step = run.current()
    opened = None if step is None else run.records.get((step.ordinal, False))
    if step is not None and step.kind not in ACTION_KINDS and step.kind is not Kind.JOIN:
        return _waiting(run, step, opened)
    todo = run.todo()
    if not todo:
        return "ending" if run.held else "waiting for a worker"
    due = run.due()
    if due and run.held:
        return f"running {_names(run, due)}"
    if due:
        return f"waiting for a worker to go on at {_names(run, due)}"
    first = min(todo, key=lambda one: run.records[one.key].next_at or 0)
    at = iso(run.records[first.key].next_at or 0)
    return f"retrying {_name(first)} at {at}, {_tries(run, first)}"


def _waiting(run: Progress, step: Step, record: Record | None) -> str:
    if record is None or record.next_at is None or record.next_at <= run.now:
        return f"waiting for a worker to go on at step {step.key}"
    at = iso(record.next_at)
    match step.kind, record.status:
        case Kind.SLEEP, _:
            return f"sleeping until {at}"
        case Kind.WAIT_FOR_SIGNAL, _:
            return f'waiting for the signal "{step.signal}", until {at}'
        case _, StepStatus.RETRYING:
            tries = f"attempt {record.attempt + 1} of {step.max_attempts}"
            return f"retrying step {step.key} at {at}, {tries}"
        case _:
            return f'waiting for run {record.child} of workflow "{step.target}", until {at}'


def _names(run: Progress, effects: list[Effect]) -> str:
    first = effects[0]
    more = f" and {len(effects) - 1} more" if len(effects) > 1 else ""
    return f"{_name(first)}, {_tries(run, first)}{more}"


def _name(effect: Effect) -> str:
    return f"{'compensation' if effect.undo else 'step'} {effect.step.key}"


def _tries(run: Progress, effect: Effect) -> str:
    record = run.records.get(effect.key)
    return f"attempt {(record.attempt if record else 0) + 1} of {effect.step.max_attempts}"


def last_error(journal: Journal) -> str | None:
    """What a run failed of, or what its current step's latest attempt failed of."""
    if journal.failure is not None:
        return journal.failure.message
    return next((record.error for record in journal.open if record.error), None)
