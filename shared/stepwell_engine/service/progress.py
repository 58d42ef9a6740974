"""How far a run has come, as its reader sees it: a row per step, and why it is not moving."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from stepwell_engine.core.definition import ACTION_KINDS, Definition, Step
from stepwell_engine.core.journal import Journal, Record
from stepwell_engine.core.run import Head, StepStatus


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step as a run's detail shows it. `output` is compact JSON, once it has been fetched."""

    step: Step
    record: Record
    output: bytes | None = None


def iso(at: int) -> str:
    """A time in ms since the epoch as ISO 8601 in UTC: 2026-01-31T12:00:00.000Z."""
    moment = datetime.fromtimestamp(at // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at % 1000:03}Z"


def step_rows(
    definition: Definition, head: Head, journal: Journal, records: Mapping[int, Record], now: int
) -> Iterator[StepRow]:
    """The steps in definition order; of a run that has ended, only those that it reached.

    `records` are all records of the run by ordinal.
    """
    current = current_step(definition, journal)
    for step in definition.flat:
        record = records.get(step.ordinal)
        if step is current and in_flight(step, head, record, now):
            record = record or Record(step.ordinal, StepStatus.RUNNING)
            yield StepRow(
                step, replace(record, status=StepStatus.RUNNING, attempt=record.attempt + 1)
            )
        elif head.live:
            yield StepRow(step, record or Record(step.ordinal, StepStatus.PENDING))
        elif record is not None and record.finished_at is not None:
            yield StepRow(step, record)
        elif record is not None or step is current:
            # The run ended while it stood here: the step will not go on.
            record = record or Record(step.ordinal, StepStatus.CANCELLED)
            yield StepRow(
                step,
                replace(
                    record, status=StepStatus.CANCELLED, finished_at=head.ended_at, next_at=None
                ),
            )


def current_step(definition: Definition, journal: Journal) -> Step | None:
    """The step at which a run stands; None behind the last one, and once the run has failed."""
    if journal.failure is not None or journal.position >= len(definition.steps):
        return None
    return definition.steps[journal.position]


def in_flight(step: Step, head: Head, record: Record | None, now: int) -> bool:
    """Whether a worker is trying the current step right now, as far as the lease tells.

    So also for a run that was cancelled meanwhile: the attempt will still be recorded.
    """
    held = head.token is not None and head.until > now
    waits = record is not None and (record.finished_at is not None or (record.next_at or 0) > now)
    return held and not waits and step.kind in ACTION_KINDS


def reason(head: Head, step: Step | None, records: Mapping[int, Record], now: int) -> str | None:
    """Why a live run is not moving, in words; None for one that has ended."""
    if not head.live:
        return None
    if head.token is not None and head.until <= now:
        return "its worker was lost: another one takes over within a minute or two"
    if step is None:
        return "ending" if head.token is not None else "waiting for a worker"
    record = records.get(step.ordinal)
    tries = f"attempt {(record.attempt if record else 0) + 1} of {step.max_attempts}"
    if in_flight(step, head, record, now):
        return f"running step {step.key}, {tries}"
    if record is None or record.next_at is None or record.next_at <= now:
        return f"waiting for a worker to go on at step {step.key}"
    at = iso(record.next_at)
    match record.status:
        case StepStatus.SLEEPING:
            return f"sleeping until {at}"
        case StepStatus.WAITING:
            return f'waiting for the signal "{step.signal}", until {at}'
        case _:
            return f"retrying step {step.key} at {at}, {tries}"


def last_error(journal: Journal) -> str | None:
    """What a run failed of, or what its current step's latest attempt failed of."""
    if journal.failure is not None:
        return journal.failure.message
    return next((record.error for record in journal.open if record.error), None)
