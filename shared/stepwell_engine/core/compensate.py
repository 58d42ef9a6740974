"""Unwinding a failed run: backwards, one top-level step at a time, each compensation in full.

Only what is recorded as succeeded is undone. A compensation that fails for good stops the walk
where it is: going on would claim an unwinding that never happened. Pure.
"""

from dataclasses import replace

from stepwell_engine.core.definition import Definition, Kind, Step
from stepwell_engine.core.effects import Effect, attempt_all
from stepwell_engine.core.fanout import bit
from stepwell_engine.core.instructions import Finish, Perform, Scene, Turn
from stepwell_engine.core.journal import Failure, Journal, Record
from stepwell_engine.core.run import Status, StepStatus
from stepwell_engine.core.transitions import error_text, record_finished

ALL_UNDONE = -1


def unwind(scene: Scene, journal: Journal, failure: Failure) -> Turn:
    """What a failed run does next: undo something, or end."""
    if failure.ordinal is None or failure.stuck:
        return Turn(journal, Finish(Status.FAILED))
    stuck = _failed_compensation(journal)
    if stuck is not None:
        if scene.flying:
            return Turn(journal, Perform(()), hold=True)
        return Turn(replace(journal, failure=_stuck(scene.definition, stuck, failure)))
    begun = journal.undo is not None
    index = journal.position - 1 if journal.undo is None else journal.undo
    while index >= 0:
        todo = compensations(scene.definition, journal, index)
        if todo:
            if index != journal.undo:
                journal = replace(journal, undo=index, undone=0)
            return attempt_all(scene, journal, todo)
        index -= 1
    if begun:
        journal = replace(journal, undo=ALL_UNDONE, undone=0)
    return Turn(journal, Finish(Status.FAILED))


def finish_compensation(definition: Definition, journal: Journal, record: Record) -> Journal:
    """Record that a step is undone; the rollback moves with it."""
    index = definition.owners[record.ordinal]
    top = definition.steps[index]
    journal = record_finished(journal, record)
    if top.ordinal == record.ordinal:
        return replace(journal, undo=index - 1, undone=0)
    child = definition.flat[record.ordinal]
    return replace(journal, undone=journal.undone | bit(top, child))


def is_undone(definition: Definition, journal: Journal, ordinal: int) -> bool:
    """Whether a step's compensation is recorded, or not this walk's turn."""
    index = definition.owners[ordinal]
    if journal.undo != index:
        return True
    top = definition.steps[index]
    step = definition.flat[ordinal]
    return top is not step and bool(journal.undone & bit(top, step))


def compensations(definition: Definition, journal: Journal, index: int) -> list[Effect]:
    """What is still to be undone of the top-level step at `index`, before the one that failed."""
    top = definition.steps[index]
    undone = journal.undone if index == journal.undo else 0
    return [
        Effect(step.compensate, undo=True)
        for step in (top, *top.children)
        if step.compensate is not None
        and _succeeded(journal, index, top, step)
        and not (step is not top and undone & bit(top, step))
    ]


def _succeeded(journal: Journal, index: int, top: Step, step: Step) -> bool:
    """Before the position everything has succeeded, but the children of the join that failed."""
    if top.kind is Kind.FANOUT and index == journal.position - 1 and step is not top:
        return bool(journal.done & bit(top, step))
    return True


def _failed_compensation(journal: Journal) -> Record | None:
    return next(
        (one for one in journal.records if one.undo and one.status is StepStatus.FAILED), None
    )


def _stuck(definition: Definition, record: Record, failure: Failure) -> Failure:
    key = definition.flat[record.ordinal].key
    text = f'compensation of step "{key}" failed, rollback stopped: {record.error}'
    # The code stays that of the step: it says whether a parent may try again.
    return replace(failure, message=error_text(text), stuck=True)
