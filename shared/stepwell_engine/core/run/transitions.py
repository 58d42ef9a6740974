"""The moves of a journal that several kinds of steps share, whatever the run executes. Pure."""

from dataclasses import replace

from stepwell_engine import limits
from stepwell_engine.core.run.attempt import Deferred, Failed
from stepwell_engine.core.run.journal import Failure, Journal
from stepwell_engine.core.run.records import Output, Record
from stepwell_engine.core.run.retry import backoff, pause
from stepwell_engine.core.run.status import StepStatus


def fail_run(journal: Journal, message: str, code: str | None = None) -> Journal:
    """A structural failure: nothing is compensated."""
    return replace(journal, failure=Failure(error_text(message), code, None))


def record_finished(journal: Journal, record: Record) -> Journal:
    """Move a record from the open ones to the finished."""
    return replace(
        journal,
        records=(*journal.records, record),
        open=tuple(one for one in journal.open if one.key != record.key),
    )


def record_open(journal: Journal, record: Record) -> Journal:
    """Put or replace an open record."""
    others = tuple(one for one in journal.open if one.key != record.key)
    return replace(journal, open=(*others, record))


def cancel_open(journal: Journal, now: int) -> Journal:
    """What was begun and backs off, sleeps or waits will not go on.

    A child run that is not known to be there is not named any more: if it is created yet, it ends
    before it begins.
    """
    for record in journal.open:
        child = None if record.status is StepStatus.PENDING else record.child
        done = replace(
            record, status=StepStatus.CANCELLED, finished_at=now, next_at=None, child=child
        )
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
        losses=0,
        hosts_lost=0,
    )


def succeeded_record(record: Record, output: Output | None, now: int) -> Record:
    """The record of a step that succeeded: its errors are forgotten, its attempts are not."""
    return replace(
        record,
        status=StepStatus.SUCCEEDED,
        finished_at=now,
        next_at=None,
        output=output,
        error=None,
        code=None,
        losses=0,
        hosts_lost=0,
    )


def retrying_record(record: Record, failed: Failed, now: int) -> Record:
    """The record of a step that backs off after a failed attempt, counted in `record` already."""
    return replace(
        record,
        status=StepStatus.RETRYING,
        next_at=now + pause(record.attempt, failed.retry_after),
        error=error_text(failed.message),
        code=failed.code,
        losses=0,
        hosts_lost=0,
    )


def lost_record(record: Record, message: str, now: int) -> Record:
    """The record of a step whose next attempt ended the process in which it was alone.

    That costs none of the attempts that the step has.
    """
    losses = record.losses + 1
    return replace(
        record,
        status=StepStatus.RETRYING,
        next_at=now + backoff(losses),
        error=error_text(message),
        code=None,
        losses=losses,
    )


def deferred_record(record: Record, outcome: Deferred, now: int) -> Record:
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
