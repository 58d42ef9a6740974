"""Trying actions: one top-level step, the children of a fan-out, compensations. Pure.

All are a list of effects still to be done; some of it may be in flight, some of it backs off.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from stepwell_engine import limits
from stepwell_engine.core.declared.context import DecisionContext, StepDecision
from stepwell_engine.core.declared.definition import Step
from stepwell_engine.core.declared.transitions import breach_ceiling, next_attempt, record_failure
from stepwell_engine.core.run.decision import Park, StartAttempts
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.core.run.transitions import ends, failed_record


@dataclass(frozen=True, slots=True)
class Action:
    """An action to be done: a step, or a compensation (whose ordinal is that of its step)."""

    step: Step
    compensation: bool = False

    @property
    def key(self) -> tuple[int, bool]:
        """Which record it makes."""
        return self.step.ordinal, self.compensation


def attempt_all(context: DecisionContext, journal: Journal, todo: Sequence[Action]) -> StepDecision:
    """Try what can be tried now, as many as may be at once; park if nothing can.

    `todo` is not empty. A new act begins only once the outcome that made room for it is recorded;
    what could be tried first begins first, so that a reader of the journal can tell what does.
    """
    hopeless = _hopeless(context, journal, todo)
    if hopeless is not None:
        return StepDecision(hopeless)
    if journal.attempts + len(context.in_flight) >= limits.MAX_RUN_ATTEMPTS:
        return (
            StepDecision(journal, StartAttempts(()))
            if context.in_flight
            else StepDecision(breach_ceiling(journal))
        )
    idle = [one for one in todo if one.key not in context.in_flight]
    backing = {one.key: opened for one in idle if (opened := _backing_off(context, journal, one))}
    ready = by_due_time(journal.opened, (one for one in idle if one.key not in backing))
    room = at_once(context.head) - len(context.in_flight)
    room = min(room, limits.MAX_RUN_ATTEMPTS - journal.attempts - len(context.in_flight))
    attempts = tuple(
        next_attempt(context, one.step, journal.opened(*one.key), one.compensation)
        for one in ready[:room]
    )
    soonest = min(map(ends, backing.values()), default=None)
    if attempts or context.in_flight:
        return StepDecision(
            journal, StartAttempts(attempts, soonest if room > len(attempts) else None)
        )
    return StepDecision(journal, Park(Status.PENDING, soonest or context.now))


def at_once(head: Head) -> int:
    """How many actions of a run may be in flight.

    One, once its workers were lost again and again: so the one that is to blame is found.
    """
    return 1 if head.lost_leases >= limits.SUSPECT_LOST_LEASES else limits.CHILDREN_AT_ONCE


def by_due_time(
    record_of: Callable[[int, bool], Record | None], ready: Iterable[Action]
) -> list[Action]:
    """Effects in the order in which they could be tried, those never tried yet first."""

    def ready_at(action: Action) -> int:
        record = record_of(*action.key)
        return 0 if record is None else ends(record)

    return sorted(ready, key=ready_at)


def _backing_off(context: DecisionContext, journal: Journal, action: Action) -> Record | None:
    """The record of an effect, not in flight, whose next attempt is not due."""
    opened = journal.opened(*action.key)
    return opened if opened is not None and context.now < ends(opened) else None


def _hopeless(context: DecisionContext, journal: Journal, todo: Sequence[Action]) -> Journal | None:
    """The journal of a run whose workers do not survive what it is about to do."""
    lost = context.head.lost_leases
    if lost < limits.MAX_LOST_LEASES or context.in_flight:
        return None
    # One that backs off was not in flight.
    ready = [one for one in todo if _backing_off(context, journal, one) is None]
    first = by_due_time(journal.opened, ready or todo)[0]
    record = journal.opened(*first.key) or Record(
        first.step.ordinal, StepStatus.RETRYING, compensation=first.compensation
    )
    text = (
        f"the worker was lost {lost} times in a row while it ran this step "
        f"(attempt {record.attempt + 1}): it may exhaust memory or crash its process"
    )
    # The attempt that was lost is counted. When it began was never recorded.
    record = replace(record, attempt=record.attempt + 1)
    failed = failed_record(record, text, "worker_lost", context.now)
    return record_failure(context.definition, journal, failed)
