"""Steps that wait for time or for a signal. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from stepwell_engine.core.declared.context import DecisionContext, StepDecision
from stepwell_engine.core.declared.definition import Step
from stepwell_engine.core.declared.transitions import fail_step, finish_step
from stepwell_engine.core.run.decision import Park, ReadOverflow
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind, content_of
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.core.run.transitions import ends, record_open, succeeded_record
from stepwell_engine.core.values.durations import in_seconds


def sleep(context: DecisionContext, step: Step, journal: Journal) -> StepDecision:
    """Park until the time is over, counted from when the run came here."""
    opened = journal.opened(step.key)
    if opened is None:
        until = context.now + step.sleep_for
        opened = Record(step.key, StepStatus.SLEEPING, 1, context.now, next_at=until)
        journal = record_open(journal, opened)
    if context.now < ends(opened):
        return StepDecision(journal, Park(Status.SLEEPING, ends(opened)))
    return StepDecision(finish_step(journal, succeeded_record(opened, None, context.now)))


def wait_for_signal(context: DecisionContext, step: Step, journal: Journal) -> StepDecision:
    """Take the oldest signal of the name, park for one, or fail when the wait expires."""
    opened = journal.opened(step.key)
    if opened is None:
        until = context.now + step.timeout
        opened = Record(step.key, StepStatus.WAITING, 1, context.now, next_at=until)
        journal = record_open(journal, opened)
    arrived = _oldest(context.inbox, step.signal)
    if arrived is not None:
        payload = content_of(context.inbox[arrived]).payload
        done = succeeded_record(opened, payload, context.now)
        return StepDecision(finish_step(journal, done), consumed=(arrived,))
    # What is beside the head is younger than all that is in it.
    overflow, head = context.overflow, context.head
    number = overflow.oldest(step.signal, journal.taken)
    if number is not None:
        payload = content_of(overflow.messages[number]).payload
        done = succeeded_record(opened, payload, context.now)
        journal = replace(journal, taken=journal.taken.plus((number, *overflow.voids)))
        return StepDecision(finish_step(journal, done), taken=(number,))
    if head.overflow_count > 0 and overflow.page(journal.taken, head.overflow_last) is not None:
        return StepDecision(journal, ReadOverflow())
    if context.now < ends(opened):
        park = Park(Status.WAITING, ends(opened), step.signal or "")
        return StepDecision(journal, park, absent=True)
    text = f'signal "{step.signal}" did not come within {in_seconds(step.timeout)}'
    return StepDecision(
        fail_step(journal, opened, text, "wait_timed_out", context.now), absent=True
    )


def _oldest(inbox: Mapping[str, InboxMessage], name: str | None) -> str | None:
    """The first signal of that name: an inbox keeps the order of arrival."""
    return next(
        (
            key
            for key, message in inbox.items()
            if message.kind is MessageKind.SIGNAL and message.name == name
        ),
        None,
    )
