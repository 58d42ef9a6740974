"""Fan-out and join. The children are in flight together; the join holds until all are finished.

A child that failed for good is recorded together with the siblings that were in flight then:
so no crash can lose a sibling's success that the unwinding would have to undo. Pure.
"""

from dataclasses import replace

from stepwell_engine import limits
from stepwell_engine.core import jsonvalue
from stepwell_engine.core.definition import Definition, Step
from stepwell_engine.core.effects import Effect, attempt_all
from stepwell_engine.core.instructions import Perform, Scene, Turn
from stepwell_engine.core.journal import Joined, Journal, Record
from stepwell_engine.core.run import StepStatus
from stepwell_engine.core.transitions import (
    cancel_open,
    fail_step,
    finish_step,
    record_finished,
    record_open,
)


def fanout(scene: Scene, step: Step, journal: Journal) -> Turn:
    """The children may start; the join is waiting for them from now on."""
    done = Record(step.ordinal, StepStatus.SUCCEEDED, 1, scene.now, scene.now)
    joining = scene.definition.steps[journal.position + 1]
    waiting = Record(joining.ordinal, StepStatus.WAITING, 1, scene.now)
    journal = record_open(finish_step(journal, done), waiting)
    return Turn(replace(journal, done=0, size=len("{}")))


def join(scene: Scene, step: Step, journal: Journal) -> Turn:
    """Try the children that are not finished; then succeed, or fail with the one that failed."""
    parent = scene.definition.steps[journal.position - 1]
    failed = failed_child(parent, journal)
    record = journal.opened(step.ordinal) or Record(step.ordinal, StepStatus.WAITING, 1)
    if failed is not None:
        if scene.flying:
            return Turn(journal, Perform(()), hold=True)
        key = scene.definition.flat[failed.ordinal].key
        text = f'child "{key}" failed: {failed.error}'
        journal = fail_step(journal, record, text, "child_failed", scene.now)
        return Turn(cancel_open(journal, scene.now))
    todo = [Effect(child) for child in parent.children if not is_done(parent, child, journal)]
    if todo:
        return attempt_all(scene, journal, todo)
    if journal.size > limits.MAX_OUTPUT:
        text = (
            f"the outputs of the children have {journal.size:,} bytes of JSON together, "
            f"at most {limits.MAX_OUTPUT:,} are kept"
        )
        return Turn(fail_step(journal, record, text, "output_too_large", scene.now))
    done = replace(record, status=StepStatus.SUCCEEDED, finished_at=scene.now, output=Joined())
    return Turn(replace(finish_step(journal, done), done=0, size=0))


def finish_child(
    definition: Definition, journal: Journal, record: Record, output: bytes | None
) -> Journal:
    """Record a child's success."""
    parent = definition.steps[definition.owners[record.ordinal]]
    child = definition.flat[record.ordinal]
    # One more member of the join's object: comma (but for the first), key, colon, value.
    size = len(jsonvalue.encode(child.key)) + 1 + len(output or b"null")
    return replace(
        record_finished(journal, record),
        done=journal.done | bit(parent, child),
        size=journal.size + size + (1 if journal.done else 0),
    )


def failed_child(parent: Step, journal: Journal) -> Record | None:
    """The first child that failed for good."""
    last = parent.ordinal + len(parent.children)
    return next(
        (
            record
            for record in journal.records
            if record.status is StepStatus.FAILED
            and not record.undo
            and parent.ordinal < record.ordinal <= last
        ),
        None,
    )


def is_done(parent: Step, child: Step, journal: Journal) -> bool:
    """Whether a child of the current fan-out is recorded as succeeded."""
    return bool(journal.done & bit(parent, child))


def bit(parent: Step, child: Step) -> int:
    """A child's bit in `done` and `undone`."""
    return 1 << (child.ordinal - parent.ordinal - 1)
