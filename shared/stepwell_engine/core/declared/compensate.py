"""Compensating a failed run: backwards, one top-level step at a time, each in full.

Only what is recorded as succeeded is compensated. A compensation that fails for good stops the walk
where it is: going on would claim a compensation that never happened. Pure.
"""

from dataclasses import replace

from stepwell_engine.core.declared.actions import attempt_all
from stepwell_engine.core.declared.context import DecisionContext, StepDecision
from stepwell_engine.core.declared.definition import Definition, Kind, Step
from stepwell_engine.core.declared.fanout import bit
from stepwell_engine.core.run.decision import Finish, StartAttempts
from stepwell_engine.core.run.journal import Failure, Journal
from stepwell_engine.core.run.keys import StepKey
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.core.run.transitions import error_text, record_finished

ALL_COMPENSATED = -1


def compensate(context: DecisionContext, journal: Journal, failure: Failure) -> StepDecision:
    """What a failed run does next: compensate something, or end."""
    if failure.step is None or failure.stuck:
        return StepDecision(journal, Finish(Status.FAILED))
    stuck = _failed_compensation(context.definition, journal)
    if stuck is not None:
        if context.in_flight:
            return StepDecision(journal, StartAttempts(()), hold=True)
        return StepDecision(replace(journal, failure=_stuck(context.definition, stuck, failure)))
    begun = journal.compensating is not None
    index = journal.position - 1 if journal.compensating is None else journal.compensating
    while index >= 0:
        todo = compensations(context.definition, journal, index)
        if todo:
            if index != journal.compensating:
                journal = replace(journal, compensating=index, children_compensated=0)
            return attempt_all(context, journal, todo)
        index -= 1
    if begun:
        journal = replace(journal, compensating=ALL_COMPENSATED, children_compensated=0)
    return StepDecision(journal, Finish(Status.FAILED))


def finish_compensation(definition: Definition, journal: Journal, record: Record) -> Journal:
    """Record that a step is compensated; the position of compensating moves with it."""
    index, step = definition.owner(record.key), definition.by_key[record.key]
    top = definition.steps[index]
    journal = record_finished(journal, record)
    if top.ordinal == step.ordinal:
        return replace(journal, compensating=index - 1, children_compensated=0)
    return replace(journal, children_compensated=journal.children_compensated | bit(top, step))


def is_compensated(definition: Definition, journal: Journal, key: StepKey) -> bool:
    """Whether a compensation is recorded, or not this walk's turn."""
    index, step = definition.owner(key), definition.by_key[key]
    if journal.compensating != index:
        return True
    top = definition.steps[index]
    return top.ordinal != step.ordinal and bool(journal.children_compensated & bit(top, step))


def compensations(definition: Definition, journal: Journal, index: int) -> list[Step]:
    """What is still to be done to compensate the top-level step at `index`.

    That step lies before the one that failed.
    """
    top = definition.steps[index]
    compensated = journal.children_compensated if index == journal.compensating else 0
    return [
        step.compensate
        for step in (top, *top.children)
        if step.compensate is not None
        and _succeeded(journal, index, top, step)
        and not (step is not top and compensated & bit(top, step))
    ]


def _succeeded(journal: Journal, index: int, top: Step, step: Step) -> bool:
    """Before the position everything has succeeded, but the children of the join that failed."""
    if top.kind is Kind.FANOUT and index == journal.position - 1 and step is not top:
        return bool(journal.children_done & bit(top, step))
    return True


def _failed_compensation(definition: Definition, journal: Journal) -> Record | None:
    failed = (one for one in journal.records if one.status is StepStatus.FAILED)
    return next((one for one in failed if one.key in definition.compensations), None)


def _stuck(definition: Definition, record: Record, failure: Failure) -> Failure:
    key = definition.flat[definition.compensations[record.key].ordinal].key
    text = f'compensation of step "{key}" failed, rollback stopped: {record.error}'
    # The code stays that of the step: it says whether a parent may try again.
    return replace(failure, message=error_text(text), stuck=True)
