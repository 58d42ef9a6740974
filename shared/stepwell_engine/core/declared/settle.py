"""What an outcome does to the journal. Pure; settling the same outcome again changes nothing."""

from dataclasses import replace

from stepwell_engine import limits
from stepwell_engine.core.declared.compensate import finish_compensation, is_compensated
from stepwell_engine.core.declared.definition import Definition, Kind
from stepwell_engine.core.declared.fanout import finish_child, is_done
from stepwell_engine.core.declared.transitions import (
    attempts_left,
    finish_step,
    record_failure,
    record_worker_lost,
)
from stepwell_engine.core.run.attempt import (
    Attempt,
    Deferred,
    Failed,
    Outcome,
    Succeeded,
    WorkerLost,
)
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.keys import StepKey
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import StepStatus
from stepwell_engine.core.run.transitions import (
    cancel_open,
    deferred_record,
    ends,
    failed_record,
    lost_record,
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
    if isinstance(outcome, WorkerLost):
        return _lose(definition, journal, attempt, outcome, started, now)
    record = _begun(journal, attempt, started)
    journal = replace(journal, attempts=journal.attempts + 1)
    outcome = _bounded(outcome)
    if isinstance(outcome, Failed):
        if attempts_left(definition.by_key[attempt.step], record, outcome):
            return record_open(journal, retrying_record(record, outcome, now))
        failed = failed_record(record, outcome.message, outcome.code, now)
        return record_failure(definition, journal, failed)
    done = succeeded_record(record, outcome.output, now)
    if attempt.step in definition.compensations:
        return finish_compensation(definition, journal, done)
    if definition.steps[journal.position].key == attempt.step:
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
    """Record what a cancelled run's attempt in flight came to; nothing moves.

    An attempt that had failed before, and was held back, leaves its step backing off.
    """
    if not _awaited(definition, journal, attempt) or isinstance(outcome, Deferred | WorkerLost):
        return journal
    record = _begun(journal, attempt, started)
    outcome = _bounded(outcome)
    attempts = journal.attempts + 1
    if isinstance(outcome, Succeeded):
        done = succeeded_record(record, outcome.output, now)
    elif now < cancelled_at and attempts_left(definition.by_key[attempt.step], record, outcome):
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
    key = definition.steps[journal.position].key
    if journal.finished(key):
        return journal
    return record_finished(journal, Record(key, StepStatus.CANCELLED, finished_at=now))


def _awaited(definition: Definition, journal: Journal, attempt: Attempt) -> bool:
    """Whether this attempt is the next one of something that the run is trying now."""
    key = attempt.step
    if key in definition.compensations:
        if journal.failure is None or is_compensated(definition, journal, key):
            return False
    elif not _is_current(definition, journal, key):
        return False
    if journal.finished(key):
        return False
    opened = journal.opened(key)
    return attempt.number == (opened.attempt if opened else 0) + 1


def _is_current(definition: Definition, journal: Journal, key: StepKey) -> bool:
    if journal.failure is not None or journal.position >= len(definition.steps):
        return False
    top = definition.steps[journal.position]
    if top.kind is not Kind.JOIN:
        return top.key == key
    index = journal.position - 1
    parent = definition.steps[index]
    if definition.owner(key) != index or key == parent.key:
        return False
    return not is_done(parent, definition.by_key[key], journal)


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


def _lose(
    definition: Definition,
    journal: Journal,
    attempt: Attempt,
    outcome: WorkerLost,
    started: int,
    now: int,
) -> Journal:
    """The journal with the same attempt due again, or given up when it lost too many workers."""
    opened = _opened(journal, attempt)
    if started < ends(opened):
        return journal  # recorded already
    lost = lost_record(opened, outcome.message, now)
    if lost.losses < limits.MAX_ALONE_LOSSES:
        return record_open(journal, lost)
    return record_worker_lost(definition, journal, lost, lost.losses, now)


def _opened(journal: Journal, attempt: Attempt) -> Record:
    return journal.opened(attempt.step) or Record(attempt.step, StepStatus.RETRYING)


def _bounded(outcome: Succeeded | Failed) -> Succeeded | Failed:
    if isinstance(outcome, Succeeded) and len(outcome.output or b"") > limits.MAX_OUTPUT:
        text = (
            f"the output has {len(outcome.output or b''):,} bytes of JSON, "
            f"at most {limits.MAX_OUTPUT:,} are kept"
        )
        return Failed(text, "output_too_large", retryable=False)
    return outcome
