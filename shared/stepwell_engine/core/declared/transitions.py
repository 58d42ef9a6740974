"""The moves of a declared run's journal that several kinds of steps share. Pure."""

from dataclasses import replace

from stepwell_engine import limits
from stepwell_engine.core.declared.context import DecisionContext
from stepwell_engine.core.declared.definition import Definition, Step
from stepwell_engine.core.run.attempt import Attempt, Failed
from stepwell_engine.core.run.journal import Failure, Journal
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.transitions import fail_run, failed_record, record_finished


def finish_step(journal: Journal, done: Record) -> Journal:
    """Record a top-level step's success and move on."""
    return replace(record_finished(journal, done), position=journal.position + 1)


def fail_step(
    journal: Journal, record: Record, message: str, code: str | None, now: int
) -> Journal:
    """Record that a top-level step failed for good, and with it the run."""
    return _failed_of(journal, failed_record(record, message, code, now))


def breach_ceiling(journal: Journal) -> Journal:
    """The run would execute more attempts than a run may: it ends, and compensating stops."""
    text = f"this run has executed {limits.MAX_RUN_ATTEMPTS} attempts, the most a run may"
    if journal.failure is None:
        return fail_run(journal, text, "step_ceiling")
    failure = replace(journal.failure, message=f"rollback stopped: {text}", stuck=True)
    return replace(journal, failure=failure)


def record_failure(definition: Definition, journal: Journal, failed: Record) -> Journal:
    """Record that an action failed for good: the run fails with it if it is the current step.

    What a failed child or a failed compensation leads to is decided when nothing is in flight.
    """
    if failed.key != definition.steps[journal.position].key:
        return record_finished(journal, failed)
    return _failed_of(journal, failed)


def record_worker_lost(
    definition: Definition, journal: Journal, record: Record, lost: int, now: int
) -> Journal:
    """Record that a step failed since its attempt lost the worker that was alone with it.

    The attempt that was lost is counted. When it began was never recorded.
    """
    number = record.attempt + 1
    text = (
        f"the worker was lost {lost} times in a row while it ran this step alone "
        f"(attempt {number}): it may exhaust memory or crash its process"
    )
    failed = failed_record(replace(record, attempt=number), text, "worker_lost", now)
    journal = replace(journal, attempts=journal.attempts + 1)
    return record_failure(definition, journal, failed)


def _failed_of(journal: Journal, failed: Record) -> Journal:
    failure = Failure(failed.error or "", failed.code, failed.key)
    return replace(record_finished(journal, failed), failure=failure)


def attempts_left(step: Step, record: Record, failed: Failed) -> bool:
    """Whether a failed attempt, counted in `record`, is followed by another."""
    return failed.retryable and record.attempt < step.max_attempts


def next_attempt(context: DecisionContext, step: Step, opened: Record | None) -> Attempt:
    """The next attempt of an action, or of a compensation."""
    run_id = context.head.run_id
    return Attempt(
        project=context.head.project,
        workflow=context.definition.workflow,
        run_id=run_id,
        step=step.key,
        kind=step.kind,
        number=(opened.attempt if opened else 0) + 1,
        idempotency_key=f"{run_id}:{step.key}",
        target=step.target or "",
        payload=step.payload,
        secret=step.secret,
        timeout=step.timeout,
    )
