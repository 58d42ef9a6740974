"""What an outcome does to the journal. Pure; settling the same outcome again changes nothing."""

from dataclasses import replace

from stepwell_engine import limits
from stepwell_engine.core.declared.compensate import finish_compensation, is_compensated
from stepwell_engine.core.declared.definition import Definition, Kind, Step
from stepwell_engine.core.declared.fanout import finish_child, is_done
from stepwell_engine.core.declared.transitions import attempts_left, finish_step, record_failure
from stepwell_engine.core.run.attempt import Attempt, Deferred, Failed, Outcome, Succeeded
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import StepStatus
from stepwell_engine.core.run.transitions import (
    cancel_open,
    deferred_record,
    ends,
    failed_record,
    record_finished,
    record_open,
    retrying_record,
    succeeded_record,
)


def settle(
    definition: Definition,
    journal: Journal,
    attempt: Attempt,
    outcome: Outcome,
    started: int,
    now: int,
) -> Journal:
    """The journal with the outcome recorded, and the position that follows from it.

    An outcome that the run does not wait for (it is recorded already) is dropped.
    """
    if not _awaited(definition, journal, attempt):
        return journal
    if isinstance(outcome, Deferred):
        return _defer(journal, attempt, outcome, started, now)
    record = _begun(journal, attempt, started)
    journal = replace(journal, attempts=journal.attempts + 1)
    outcome = _bounded(outcome)
    if isinstance(outcome, Failed):
        if attempts_left(_step(definition, attempt), record, outcome):
            return record_open(journal, retrying_record(record, outcome, now))
        failed = failed_record(record, outcome.message, outcome.code, now)
        return record_failure(definition, journal, failed)
    done = succeeded_record(record, outcome.output, now)
    if attempt.compensation:
        return finish_compensation(definition, journal, done)
    if definition.steps[journal.position].ordinal == attempt.ordinal:
        return finish_step(journal, done)
    return finish_child(definition, journal, done, outcome.output)


def settle_cancelled(
    definition: Definition,
    journal: Journal,
    attempt: Attempt,
    outcome: Outcome,
    started: int,
    now: int,
    cancelled_at: int,
) -> Journal:
    """Record what a cancelled run's act in flight came to; nothing moves.

    An attempt that had failed before, and was held back, leaves its step backing off.
    """
    if not _awaited(definition, journal, attempt) or any(
        record.action_key == (attempt.ordinal, attempt.compensation) for record in journal.records
    ):
        return journal
    if isinstance(outcome, Deferred):
        return journal
    record = _begun(journal, attempt, started)
    outcome = _bounded(outcome)
    attempts = journal.attempts + 1
    if isinstance(outcome, Succeeded):
        done = succeeded_record(record, outcome.output, now)
    elif now < cancelled_at and attempts_left(_step(definition, attempt), record, outcome):
        waiting = retrying_record(record, outcome, now)
        return replace(record_open(journal, waiting), attempts=attempts)
    else:
        done = failed_record(record, outcome.message, outcome.code, now)
    return replace(record_finished(journal, done), attempts=attempts)


def close(definition: Definition, journal: Journal, now: int) -> Journal:
    """Close the journal of a cancelled run: what it stood at becomes cancelled."""
    journal = cancel_open(journal, now)
    if journal.failure is not None or journal.position >= len(definition.steps):
        return journal
    ordinal = definition.steps[journal.position].ordinal
    if any(record.action_key == (ordinal, False) for record in journal.records):
        return journal
    return record_finished(journal, Record(ordinal, StepStatus.CANCELLED, finished_at=now))


def _awaited(definition: Definition, journal: Journal, attempt: Attempt) -> bool:
    """Whether this attempt is the next one of something that the run is trying now."""
    if attempt.compensation and (
        journal.failure is None or is_compensated(definition, journal, attempt.ordinal)
    ):
        return False
    if not attempt.compensation and not _is_current(definition, journal, attempt):
        return False
    if any(
        record.action_key == (attempt.ordinal, attempt.compensation) for record in journal.records
    ):
        return False
    opened = journal.opened(attempt.ordinal, attempt.compensation)
    return attempt.number == (opened.attempt if opened else 0) + 1


def _is_current(definition: Definition, journal: Journal, attempt: Attempt) -> bool:
    if journal.failure is not None or journal.position >= len(definition.steps):
        return False
    top = definition.steps[journal.position]
    if top.kind is not Kind.JOIN:
        return top.ordinal == attempt.ordinal
    index = journal.position - 1
    parent = definition.steps[index]
    if definition.owners[attempt.ordinal] != index or attempt.ordinal == parent.ordinal:
        return False
    return not is_done(parent, definition.flat[attempt.ordinal], journal)


def _step(definition: Definition, attempt: Attempt) -> Step:
    step = definition.flat[attempt.ordinal]
    return (step.compensate or step) if attempt.compensation else step


def _begun(journal: Journal, attempt: Attempt, started: int) -> Record:
    opened = _opened(journal, attempt)
    first = started if opened.started_at is None else opened.started_at
    return replace(opened, attempt=attempt.number, started_at=first)


def _defer(
    journal: Journal, attempt: Attempt, outcome: Deferred, started: int, now: int
) -> Journal:
    """The journal with the same attempt due again after the shortest pause."""
    opened = _opened(journal, attempt)
    if started < ends(opened):
        return journal  # recorded already
    return record_open(journal, deferred_record(opened, outcome, now))


def _opened(journal: Journal, attempt: Attempt) -> Record:
    return journal.opened(attempt.ordinal, attempt.compensation) or Record(
        attempt.ordinal, StepStatus.RETRYING, compensation=attempt.compensation
    )


def _bounded(outcome: Succeeded | Failed) -> Succeeded | Failed:
    if isinstance(outcome, Succeeded) and len(outcome.output or b"") > limits.MAX_OUTPUT:
        text = (
            f"the output has {len(outcome.output or b''):,} bytes of JSON, "
            f"at most {limits.MAX_OUTPUT:,} are kept"
        )
        return Failed(text, "output_too_large", retryable=False)
    return outcome
