"""Fan-out and join. The children are in flight together; the join holds until all are finished.

A child that failed for good is recorded together with the siblings that were in flight then:
so no crash can lose a sibling's success that would have to be compensated. Pure.
"""

from dataclasses import replace

from stepwell_engine import limits
from stepwell_engine.core.declared.actions import attempt_all
from stepwell_engine.core.declared.context import DecisionContext, StepDecision
from stepwell_engine.core.declared.definition import Definition, Step
from stepwell_engine.core.declared.transitions import fail_step, finish_step
from stepwell_engine.core.run.decision import StartAttempts
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.records import Joined, Record
from stepwell_engine.core.run.status import StepStatus
from stepwell_engine.core.run.transitions import (
    cancel_open,
    record_finished,
    record_open,
    succeeded_record,
)
from stepwell_engine.core.values import jsonvalue


def fanout(context: DecisionContext, step: Step, journal: Journal) -> StepDecision:
    """The children may start; the join is waiting for them from now on."""
    done = Record(step.key, StepStatus.SUCCEEDED, 1, context.now, context.now)
    joining = context.definition.steps[journal.position + 1]
    waiting = Record(joining.key, StepStatus.WAITING, 1, context.now)
    journal = record_open(finish_step(journal, done), waiting)
    return StepDecision(replace(journal, children_done=0, children_bytes=len("{}")))


def join(context: DecisionContext, step: Step, journal: Journal) -> StepDecision:
    """Try the children that are not finished; then succeed, or fail with the one that failed."""
    parent = context.definition.steps[journal.position - 1]
    failed = failed_child(parent, journal)
    record = journal.opened(step.key) or Record(step.key, StepStatus.WAITING, 1)
    if failed is not None:
        if context.in_flight:
            return StepDecision(journal, StartAttempts(()), hold=True)
        text = f'child "{failed.key}" failed: {failed.error}'
        journal = fail_step(journal, record, text, "child_failed", context.now)
        return StepDecision(cancel_open(journal, context.now))
    todo = [child for child in parent.children if not is_done(parent, child, journal)]
    if todo:
        return attempt_all(context, journal, todo)
    if journal.children_bytes > limits.MAX_OUTPUT:
        text = (
            f"the outputs of the children have {journal.children_bytes:,} bytes of JSON together, "
            f"at most {limits.MAX_OUTPUT:,} are kept"
        )
        return StepDecision(fail_step(journal, record, text, "output_too_large", context.now))
    done = succeeded_record(record, Joined(), context.now)
    return StepDecision(replace(finish_step(journal, done), children_done=0, children_bytes=0))


def finish_child(
    definition: Definition, journal: Journal, record: Record, output: bytes | None
) -> Journal:
    """Record a child's success."""
    parent, child = definition.steps[definition.owner(record.key)], definition.by_key[record.key]
    # One more member of the join's object: comma (but for the first), key, colon, value.
    size = len(jsonvalue.encode(child.key)) + 1 + len(output or b"null")
    return replace(
        record_finished(journal, record),
        children_done=journal.children_done | bit(parent, child),
        children_bytes=journal.children_bytes + size + (1 if journal.children_done else 0),
    )


def failed_child(parent: Step, journal: Journal) -> Record | None:
    """The first child that failed for good."""
    children = {child.key for child in parent.children}
    failed = (one for one in journal.records if one.status is StepStatus.FAILED)
    return next((one for one in failed if one.key in children), None)


def is_done(parent: Step, child: Step, journal: Journal) -> bool:
    """Whether a child of the current fan-out is recorded as succeeded."""
    return bool(journal.children_done & bit(parent, child))


def bit(parent: Step, child: Step) -> int:
    """A child's bit in `children_done` and `children_compensated`."""
    return 1 << (child.ordinal - parent.ordinal - 1)
