"""What an outcome does to the journal. Pure; settling the same outcome again changes nothing."""

from dataclasses import replace

from stepwell_engine import limits
from stepwell_engine.core.compensate import finish_compensation, is_undone
from stepwell_engine.core.definition import Definition, Kind, Step
from stepwell_engine.core.fanout import finish_child, is_done
from stepwell_engine.core.journal import Journal, Record
from stepwell_engine.core.outcome import Act, Failed, NotTried, Outcome, Succeeded
from stepwell_engine.core.run import StepStatus
from stepwell_engine.core.transitions import (
    attempts_left,
    cancel_open,
    ends,
    failed_record,
    finish_step,
    put_off_record,
    record_failure,
    record_finished,
    record_open,
    retrying_record,
    succeeded_record,
)


def settle(
    definition: Definition, journal: Journal, act: Act, outcome: Outcome, started: int, now: int
) -> Journal:
    """The journal with the outcome recorded, and the position that follows from it.

    An outcome that the run does not wait for (it is recorded already) is dropped.
    """
    if not _awaited(definition, journal, act):
        return journal
    if isinstance(outcome, NotTried):
        return _put_off(journal, act, outcome, started, now)
    record = _begun(journal, act, started)
    journal = replace(journal, attempts=journal.attempts + 1)
    outcome = _bounded(outcome)
    if isinstance(outcome, Failed):
        if attempts_left(_step(definition, act), record, outcome):
            return record_open(journal, retrying_record(record, outcome, now))
        failed = failed_record(record, outcome.message, outcome.code, now)
        return record_failure(definition, journal, failed)
    done = succeeded_record(record, outcome.output, now)
    if act.undo:
        return finish_compensation(definition, journal, done)
    if definition.steps[journal.position].ordinal == act.ordinal:
        return finish_step(journal, done)
    return finish_child(definition, journal, done, outcome.output)


def settle_cancelled(
    definition: Definition,
    journal: Journal,
    act: Act,
    outcome: Outcome,
    started: int,
    now: int,
    cancelled_at: int,
) -> Journal:
    """Record what a cancelled run's act in flight came to; nothing moves.

    An attempt that had failed before, and was held back, leaves its step backing off.
    """
    if not _awaited(definition, journal, act) or any(
        record.effect == (act.ordinal, act.undo) for record in journal.records
    ):
        return journal
    if isinstance(outcome, NotTried):
        return journal
    record = _begun(journal, act, started)
    outcome = _bounded(outcome)
    attempts = journal.attempts + 1
    if isinstance(outcome, Succeeded):
        done = succeeded_record(record, outcome.output, now)
    elif now < cancelled_at and attempts_left(_step(definition, act), record, outcome):
        waiting = retrying_record(record, outcome, now)
        return replace(record_open(journal, waiting), attempts=attempts)
    else:
        done = failed_record(record, outcome.message, outcome.code, now)
    return replace(record_finished(journal, done), attempts=attempts)


def stop(definition: Definition, journal: Journal, now: int) -> Journal:
    """Close the journal of a cancelled run: what it stood at becomes cancelled."""
    journal = cancel_open(journal, now)
    if journal.failure is not None or journal.position >= len(definition.steps):
        return journal
    ordinal = definition.steps[journal.position].ordinal
    if any(record.effect == (ordinal, False) for record in journal.records):
        return journal
    return record_finished(journal, Record(ordinal, StepStatus.CANCELLED, finished_at=now))


def _awaited(definition: Definition, journal: Journal, act: Act) -> bool:
    """Whether this attempt is the next one of something that the run is trying now."""
    if act.undo and (journal.failure is None or is_undone(definition, journal, act.ordinal)):
        return False
    if not act.undo and not _is_current(definition, journal, act):
        return False
    if any(record.effect == (act.ordinal, act.undo) for record in journal.records):
        return False
    opened = journal.opened(act.ordinal, act.undo)
    return act.attempt == (opened.attempt if opened else 0) + 1


def _is_current(definition: Definition, journal: Journal, act: Act) -> bool:
    if journal.failure is not None or journal.position >= len(definition.steps):
        return False
    top = definition.steps[journal.position]
    if top.kind is not Kind.JOIN:
        return top.ordinal == act.ordinal
    index = journal.position - 1
    parent = definition.steps[index]
    if definition.owners[act.ordinal] != index or act.ordinal == parent.ordinal:
        return False
    return not is_done(parent, definition.flat[act.ordinal], journal)


def _step(definition: Definition, act: Act) -> Step:
    step = definition.flat[act.ordinal]
    return (step.compensate or step) if act.undo else step


def _begun(journal: Journal, act: Act, started: int) -> Record:
    opened = _opened(journal, act)
    first = started if opened.started_at is None else opened.started_at
    return replace(opened, attempt=act.attempt, started_at=first)


def _put_off(journal: Journal, act: Act, outcome: NotTried, started: int, now: int) -> Journal:
    """The journal with the same attempt due again after the shortest pause."""
    opened = _opened(journal, act)
    if started < ends(opened):
        return journal  # recorded already
    return record_open(journal, put_off_record(opened, outcome, now))


def _opened(journal: Journal, act: Act) -> Record:
    return journal.opened(act.ordinal, act.undo) or Record(
        act.ordinal, StepStatus.RETRYING, undo=act.undo
    )


def _bounded(outcome: Succeeded | Failed) -> Succeeded | Failed:
    if isinstance(outcome, Succeeded) and len(outcome.output or b"") > limits.MAX_OUTPUT:
        text = (
            f"the output has {len(outcome.output or b''):,} bytes of JSON, "
            f"at most {limits.MAX_OUTPUT:,} are kept"
        )
        return Failed(text, "output_too_large", retryable=False)
    return outcome
