"""Sub-workflows: a child run, and a parent that waits for it at no cost. Pure."""

from dataclasses import replace

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
from stepwell_engine.core.run.child import ChildResult, result_of
from stepwell_engine.core.run.decision import CancelChild, Park, StartChild
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.core.run.transitions import (
    ends,
    record_open,
    retrying_record,
    succeeded_record,
)
from stepwell_engine.core.values.durations import in_seconds

# What is not retried anywhere up the chain of parents.
_FINAL_CODES = frozenset({"depth_exceeded"})


def subworkflow(context: DecisionContext, step: Step, journal: Journal) -> StepDecision:
    """Start a child, wait for its end, or give it up when its time is over."""
    opened = journal.opened(step.key)
    if opened is None and context.head.depth >= limits.MAX_DEPTH:
        record = Record(step.key, StepStatus.PENDING, 1, context.now)
        text = f"this run is {context.head.depth} levels deep, the most: it can start no other"
        return StepDecision(fail_step(journal, record, text, "depth_exceeded", context.now))
    starts_child = opened is None or opened.status is StepStatus.RETRYING
    if starts_child and journal.attempts >= limits.MAX_RUN_ATTEMPTS:
        return StepDecision(breach_ceiling(journal))
    if opened is None:
        return StepDecision(journal, _start(step, 1, None))
    if opened.status is StepStatus.RETRYING:
        if context.now < ends(opened):
            return StepDecision(journal, Park(Status.PENDING, ends(opened)))
        return StepDecision(journal, _start(step, opened.attempt + 1, None))
    child = opened.child or ""
    if opened.status is StepStatus.PENDING:
        return StepDecision(journal, _start(step, opened.attempt, child))
    message = context.inbox.get(child)
    if message is not None:
        result = result_of(message)
        return StepDecision(
            settle_child(context.definition, journal, result, context.now), consumed=(child,)
        )
    if context.now < ends(opened):
        return StepDecision(journal, Park(Status.WAITING, ends(opened)), absent=True)
    return StepDecision(journal, CancelChild(step.key, child))


def _start(step: Step, attempt: int, child: str | None) -> StartChild:
    return StartChild(step.key, attempt, step.target or "", step.payload, child)


def begin_child(step: Step, journal: Journal, attempt: int, child: str, now: int) -> Journal:
    """Record which run is about to be started: after a crash it is that one, and no other."""
    opened = journal.opened(step.key) or Record(step.key, StepStatus.PENDING, 0, now)
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
    opened = journal.opened(step.key)
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
    opened = journal.opened(step.key)
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
    opened = journal.opened(step.key)
    if opened is None:
        return journal
    if result.status is Status.SUCCEEDED:
        return finish_step(journal, succeeded_record(opened, result.output, now))
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


def _failed(step: Step, journal: Journal, opened: Record, failed: Failed, now: int) -> Journal:
    if attempts_left(step, opened, failed):
        return record_open(journal, retrying_record(opened, failed, now))
    return fail_step(journal, opened, failed.message, failed.code, now)
