"""The moves of a journal that several kinds of steps share. Pure."""

from dataclasses import replace

from stepwell_engine import limits
from stepwell_engine.core.definition import Definition, Step
from stepwell_engine.core.instructions import Scene
from stepwell_engine.core.journal import Failure, Journal, Record
from stepwell_engine.core.outcome import Act, Failed, NotTried
from stepwell_engine.core.retry import backoff, pause
from stepwell_engine.core.run import StepStatus


def finish_step(journal: Journal, done: Record) -> Journal:
    """Record a top-level step's success and move on."""
    return replace(record_finished(journal, done), position=journal.position + 1)


def fail_step(
    journal: Journal, record: Record, message: str, code: str | None, now: int
) -> Journal:
    """Record that a top-level step failed for good, and with it the run."""
    failed = failed_record(record, message, code, now)
    failure = Failure(failed.error or "", code, record.ordinal)
    return replace(record_finished(journal, failed), failure=failure)


def fail_run(journal: Journal, message: str, code: str | None = None) -> Journal:
    """A structural failure: nothing is undone."""
    return replace(journal, failure=Failure(error_text(message), code, None))


def breach_ceiling(journal: Journal) -> Journal:
    """The run would execute more attempts than a run may: it ends, and a rollback stops."""
    text = f"this run has executed {limits.MAX_RUN_ATTEMPTS} attempts, the most a run may"
    if journal.failure is None:
        return fail_run(journal, text, "step_ceiling")
    failure = replace(journal.failure, message=f"rollback stopped: {text}", stuck=True)
    return replace(journal, failure=failure)


def record_failure(definition: Definition, journal: Journal, failed: Record) -> Journal:
    """Record that an action failed for good: the run fails with it if it is the current step.

    What a failed child or a failed compensation leads to is decided when nothing is in flight.
    """
    current = definition.steps[journal.position].ordinal
    if failed.undo or failed.ordinal != current:
        return record_finished(journal, failed)
    failure = Failure(failed.error or "", failed.code, failed.ordinal)
    return replace(record_finished(journal, failed), failure=failure)


def record_finished(journal: Journal, record: Record) -> Journal:
    """Move a record from the open ones to the finished."""
    return replace(
        journal,
        records=(*journal.records, record),
        open=tuple(one for one in journal.open if one.effect != record.effect),
    )


def record_open(journal: Journal, record: Record) -> Journal:
    """Put or replace an open record."""
    others = tuple(one for one in journal.open if one.effect != record.effect)
    return replace(journal, open=(*others, record))


def cancel_open(journal: Journal, now: int) -> Journal:
    """What was begun and backs off, sleeps or waits will not go on."""
    for record in journal.open:
        done = replace(record, status=StepStatus.CANCELLED, finished_at=now, next_at=None)
        journal = record_finished(journal, done)
    return journal


def failed_record(record: Record, message: str, code: str | None, now: int) -> Record:
    """The record of a step whose last attempt failed."""
    return replace(
        record,
        status=StepStatus.FAILED,
        finished_at=now,
        next_at=None,
        error=error_text(message),
        code=code,
    )


def succeeded_record(record: Record, output: bytes | None, now: int) -> Record:
    """The record of a step that succeeded: its errors are forgotten, its attempts are not."""
    return replace(
        record,
        status=StepStatus.SUCCEEDED,
        finished_at=now,
        next_at=None,
        output=output,
        error=None,
        code=None,
    )


def retrying_record(record: Record, failed: Failed, now: int) -> Record:
    """The record of a step that backs off after a failed attempt, counted in `record` already."""
    return replace(
        record,
        status=StepStatus.RETRYING,
        next_at=now + pause(record.attempt, failed.retry_after),
        error=error_text(failed.message),
        code=failed.code,
    )


def put_off_record(record: Record, outcome: NotTried, now: int) -> Record:
    """The record of a step whose next attempt could not begin."""
    return replace(
        record,
        status=StepStatus.RETRYING,
        next_at=now + backoff(1),
        error=error_text(outcome.message),
        code=None,
    )


def error_text(message: str) -> str:
    """A message as it is kept: cut, and valid Unicode, which the words of others may not be."""
    return message[: limits.MAX_ERROR_TEXT].encode(errors="replace").decode()


def ends(record: Record) -> int:
    """When a backoff or a sleep is over, or a wait expires."""
    return record.next_at or 0


def attempts_left(step: Step, record: Record, failed: Failed) -> bool:
    """Whether a failed attempt, counted in `record`, is followed by another."""
    return failed.retryable and record.attempt < step.max_attempts


def act(scene: Scene, step: Step, opened: Record | None, undo: bool) -> Act:
    """The next attempt of an action."""
    run_id = scene.head.run_id
    return Act(
        project=scene.head.project,
        workflow=scene.definition.workflow,
        run_id=run_id,
        ordinal=step.ordinal,
        step=step.key,
        kind=step.kind,
        attempt=(opened.attempt if opened else 0) + 1,
        effect_id=f"{run_id}:{step.key}",
        target=step.target or "",
        payload=step.payload,
        secret=step.secret,
        timeout=step.timeout,
        undo=undo,
    )
