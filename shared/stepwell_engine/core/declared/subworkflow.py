"""Sub-workflows: a child run, and a parent that waits for it at no cost. Pure."""

from dataclasses import dataclass, replace

from stepwell_engine import limits
from stepwell_engine.core.declared.context import DecisionContext, StepDecision
from stepwell_engine.core.declared.definition import Definition, Step
from stepwell_engine.core.declared.transitions import (
    attempts_left,
    breach_ceiling,
    fail_step,
    finish_step,
)
from stepwell_engine.core.run.attempt import Failed
from stepwell_engine.core.run.decision import CancelChild, Park, StartChild
from stepwell_engine.core.run.inbox import InboxMessage
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.records import Record, Stored
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.core.run.transitions import ends, record_open, retrying_record
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.core.values.durations import in_seconds

# What is not retried anywhere up the chain of parents.
_FINAL_CODES = frozenset({"depth_exceeded"})


@dataclass(frozen=True, slots=True)
class ChildResult:
    """How a child run ended. `output` is compact JSON, or the parent's blob that holds it."""

    status: Status
    ended_at: int
    message: str | None = None
    code: str | None = None
    output: bytes | Stored | None = None


def subworkflow(context: DecisionContext, step: Step, journal: Journal) -> StepDecision:
    """Start a child, wait for its end, or give it up when its time is over."""
    opened = journal.opened(step.ordinal)
    if opened is None and context.head.depth >= limits.MAX_DEPTH:
        record = Record(step.ordinal, StepStatus.PENDING, 1, context.now)
        text = f"this run is {context.head.depth} levels deep, the most: it can start no other"
        return StepDecision(fail_step(journal, record, text, "depth_exceeded", context.now))
    child_starts = opened is None or opened.status is StepStatus.RETRYING
    if child_starts and journal.attempts >= limits.MAX_RUN_ATTEMPTS:
        return StepDecision(breach_ceiling(journal))
    if opened is None:
        return StepDecision(journal, StartChild(step.ordinal, 1, None))
    if opened.status is StepStatus.RETRYING:
        if context.now < ends(opened):
            return StepDecision(journal, Park(Status.PENDING, ends(opened)))
        return StepDecision(journal, StartChild(step.ordinal, opened.attempt + 1, None))
    child = opened.child or ""
    if opened.status is StepStatus.PENDING:
        return StepDecision(journal, StartChild(step.ordinal, opened.attempt, child))
    message = context.inbox.get(child)
    if message is not None:
        result = result_of(message)
        return StepDecision(
            settle_child(context.definition, journal, result, context.now), consumed=(child,)
        )
    if context.now < ends(opened):
        return StepDecision(journal, Park(Status.WAITING, ends(opened)), absent=True)
    return StepDecision(journal, CancelChild(step.ordinal, child))


def begin_child(step: Step, journal: Journal, attempt: int, child: str, now: int) -> Journal:
    """Record which run is about to be started: after a crash it is that one, and no other."""
    opened = journal.opened(step.ordinal) or Record(step.ordinal, StepStatus.PENDING, 0, now)
    pending = replace(
        opened,
        status=StepStatus.PENDING,
        attempt=attempt,
        next_at=now + step.timeout,
        child=child,
        error=None,
        code=None,
    )
    return record_open(replace(journal, attempts=journal.attempts + 1), pending)


def child_started(step: Step, journal: Journal) -> Journal:
    """The child exists: wait for it."""
    opened = journal.opened(step.ordinal)
    return (
        journal
        if opened is None
        else record_open(journal, replace(opened, status=StepStatus.WAITING))
    )


def child_not_started(
    definition: Definition, journal: Journal, failed: Failed, now: int
) -> Journal:
    """No child could be started: a failed attempt, and no run that anybody could look at."""
    step = definition.steps[journal.position]
    opened = journal.opened(step.ordinal)
    if opened is None:
        return journal
    return _failed(step, journal, replace(opened, child=None), failed, now)


def settle_child(
    definition: Definition, journal: Journal, result: ChildResult, now: int
) -> Journal:
    """The journal with the child's end recorded.

    A child that was cancelled when its time was over was cancelled by its parent: a timeout, and
    a failed attempt. One cancelled before was cancelled by somebody: never retried.
    """
    step = definition.steps[journal.position]
    opened = journal.opened(step.ordinal)
    if opened is None:
        return journal
    if result.status is Status.SUCCEEDED:
        done = replace(
            opened,
            status=StepStatus.SUCCEEDED,
            finished_at=now,
            next_at=None,
            output=result.output,
        )
        return finish_step(journal, done)
    if result.status is Status.CANCELLED and result.ended_at < ends(opened):
        text = f"child run {opened.child} was cancelled"
        return fail_step(journal, opened, text, "child_cancelled", now)
    if result.status is Status.CANCELLED:
        text = f"child run {opened.child} did not end within {in_seconds(step.timeout)}"
        return _failed(step, journal, opened, Failed(text, "timeout"), now)
    text = f"child run {opened.child} ended {result.status}: {result.message}"
    final = result.code in _FINAL_CODES
    code = result.code if final else "child_failed"
    return _failed(step, journal, opened, Failed(text, code, retryable=not final), now)


def message_of(result: ChildResult) -> tuple[InboxMessage, bytes | None]:
    """The mail that tells a parent of its child's end, and the output if it needs a blob."""
    output = result.output if isinstance(result.output, bytes) else None
    large = output is not None and len(output) > limits.INLINE_MESSAGE
    body = [
        result.status,
        result.message,
        result.code,
        len(output or b""),
        *([] if output is None or large else [jsonvalue.decode(output)]),
    ]
    message = InboxMessage("child", result.status, result.ended_at, jsonvalue.encode(body))
    return message, output if large else None


def result_of(message: InboxMessage) -> ChildResult:
    """What such a mail says."""
    status, error, code, size, *inline = jsonvalue.decode(message.body or b"[]")
    output: bytes | Stored | None = jsonvalue.encode(inline[0]) if inline else None
    if message.blob is not None:
        output = Stored(message.blob, size)
    return ChildResult(Status(status), message.at, error, code, output)


def _failed(step: Step, journal: Journal, opened: Record, failed: Failed, now: int) -> Journal:
    if attempts_left(step, opened, failed):
        return record_open(journal, retrying_record(opened, failed, now))
    return fail_step(journal, opened, failed.message, failed.code, now)
