"""What an outcome does to the journal. Pure; settling the same outcome again changes nothing."""

from dataclasses import replace

from stepwell_engine import limits
from stepwell_engine.core.decide import fail_step, finish_step, without
from stepwell_engine.core.definition import Definition
from stepwell_engine.core.journal import Journal, Record
from stepwell_engine.core.outcome import Act, Failed, Outcome, Succeeded
from stepwell_engine.core.retry import pause
from stepwell_engine.core.run import StepStatus


def settle(
    definition: Definition, journal: Journal, act: Act, outcome: Outcome, started: int, now: int
) -> Journal:
    """The journal with the outcome recorded, and the position that follows from it.

    An outcome that is not of the step and attempt that are next is recorded already: dropped.
    """
    if not _is_next(definition, journal, act):
        return journal
    record = _begun(journal, act, started)
    journal = replace(journal, attempts=journal.attempts + 1)
    outcome = _bounded(outcome)
    if isinstance(outcome, Succeeded):
        return finish_step(journal, _succeeded(record, outcome, now))
    step = definition.flat[act.ordinal]
    if not outcome.retryable or act.attempt >= step.max_attempts:
        return fail_step(journal, record, outcome.message, outcome.code, now)
    waiting = replace(
        record,
        status=StepStatus.RETRYING,
        next_at=now + pause(act.attempt, outcome.retry_after),
        error=outcome.message[: limits.MAX_ERROR_TEXT],
        code=outcome.code,
    )
    return replace(journal, open=(*without(journal.open, act.ordinal), waiting))


def settle_cancelled(
    definition: Definition, journal: Journal, act: Act, outcome: Outcome, started: int, now: int
) -> Journal:
    """Record what a cancelled run's step in flight came to; the position stays."""
    if not _is_next(definition, journal, act):
        return journal
    record = _begun(journal, act, started)
    outcome = _bounded(outcome)
    done = (
        _succeeded(record, outcome, now)
        if isinstance(outcome, Succeeded)
        else replace(
            record,
            status=StepStatus.FAILED,
            finished_at=now,
            next_at=None,
            error=outcome.message[: limits.MAX_ERROR_TEXT],
            code=outcome.code,
        )
    )
    return replace(
        journal,
        attempts=journal.attempts + 1,
        records=(*journal.records, done),
        open=without(journal.open, act.ordinal),
    )


def stop(definition: Definition, journal: Journal, now: int) -> Journal:
    """Close the journal of a cancelled run: the step it stood at becomes cancelled."""
    if journal.failure is not None or journal.position >= len(definition.steps):
        return journal
    ordinal = definition.steps[journal.position].ordinal
    record = journal.opened(ordinal) or Record(ordinal, StepStatus.CANCELLED)
    done = replace(record, status=StepStatus.CANCELLED, finished_at=now, next_at=None)
    return replace(journal, records=(*journal.records, done), open=without(journal.open, ordinal))


def _is_next(definition: Definition, journal: Journal, act: Act) -> bool:
    if journal.failure is not None or journal.position >= len(definition.steps):
        return False
    if any(record.ordinal == act.ordinal for record in journal.records):
        return False
    opened = journal.opened(act.ordinal)
    attempts = opened.attempt if opened else 0
    return definition.steps[journal.position].ordinal == act.ordinal and act.attempt == attempts + 1


def _begun(journal: Journal, act: Act, started: int) -> Record:
    opened = journal.opened(act.ordinal) or Record(
        act.ordinal, StepStatus.RETRYING, started_at=started
    )
    return replace(opened, attempt=act.attempt)


def _succeeded(record: Record, outcome: Succeeded, now: int) -> Record:
    return replace(
        record,
        status=StepStatus.SUCCEEDED,
        finished_at=now,
        next_at=None,
        output=outcome.output,
        error=None,
        code=None,
    )


def _bounded(outcome: Outcome) -> Outcome:
    if isinstance(outcome, Succeeded) and len(outcome.output or b"") > limits.MAX_OUTPUT:
        text = (
            f"the output has {len(outcome.output or b'')} bytes of JSON, "
            f"at most {limits.MAX_OUTPUT} are kept"
        )
        return Failed(text, "output_too_large", retryable=False)
    return outcome
