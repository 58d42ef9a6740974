"""Trying actions: one top-level step, the children of a fan-out, compensations. Pure.

All are a list of actions still to be done; some of it may be in flight, some of it backs off.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from stepwell_engine import limits
from stepwell_engine.core.declared.context import DecisionContext, StepDecision
from stepwell_engine.core.declared.definition import Step
from stepwell_engine.core.declared.transitions import (
    breach_ceiling,
    next_attempt,
    record_worker_lost,
)
from stepwell_engine.core.run.decision import Park, StartAttempts
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.keys import StepKey
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.core.run.transitions import ends, record_open


def attempt_all(context: DecisionContext, journal: Journal, todo: Sequence[Step]) -> StepDecision:
    """Try what can be tried now, as many as may be at once; park if nothing can.

    `todo` is not empty. What is in flight is not stored: a reader takes the first ones of those
    that could be tried to be in flight. So a new attempt begins only once the outcome that made
    room for it is recorded, and what could be tried first begins first.
    """
    given_up = _given_up(context, journal, todo)
    if given_up is not None:
        return StepDecision(given_up)
    begun = len(context.in_flight)
    if journal.attempts + begun >= limits.MAX_RUN_ATTEMPTS:
        if context.in_flight:
            return StepDecision(journal, StartAttempts(()))
        return StepDecision(breach_ceiling(journal))
    idle = [step for step in todo if step.key not in context.in_flight]
    backing = {step.key: one for step in idle if (one := _backing_off(context, journal, step))}
    ready = by_due_time(journal.opened, (step for step in idle if step.key not in backing))
    room = at_once(context.head) - begun
    room = min(room, limits.MAX_RUN_ATTEMPTS - journal.attempts - begun)
    attempts = tuple(next_attempt(context, step, journal.opened(step.key)) for step in ready[:room])
    soonest = min(map(ends, backing.values()), default=None)
    if attempts or context.in_flight:
        until = soonest if room > len(attempts) else None
        return StepDecision(journal, StartAttempts(attempts, until))
    return StepDecision(journal, Park(Status.PENDING, soonest or context.now))


def at_once(head: Head) -> int:
    """How many actions of a run may be in flight.

    One, once its workers were lost again and again: so the one that is to blame is found. And one
    for a worker that came for that, to be alone with it: its loss counts against the one in turn.
    """
    return 1 if head.suspect or head.alone else limits.CHILDREN_AT_ONCE


def by_due_time(record_of: Callable[[StepKey], Record | None], ready: Iterable[Step]) -> list[Step]:
    """Actions in the order in which they could be tried, those never tried yet first."""

    def ready_at(step: Step) -> int:
        record = record_of(step.key)
        return 0 if record is None else ends(record)

    return sorted(ready, key=ready_at)


def _backing_off(context: DecisionContext, journal: Journal, step: Step) -> Record | None:
    """The record of an action, not in flight, whose next attempt is not due."""
    opened = journal.opened(step.key)
    return opened if opened is not None and context.now < ends(opened) else None


def _given_up(context: DecisionContext, journal: Journal, todo: Sequence[Step]) -> Journal | None:
    """What losses in a row do to the action in turn: it waits, or is given up.

    A worker that was alone in its process when it was lost was lost of that action. What a host
    was lost of that runs each action in a child process nobody knows; but it may be this one.
    """
    head = context.head
    if not head.suspect or context.in_flight:
        return None
    # One that backs off was not in flight.
    ready = [step for step in todo if _backing_off(context, journal, step) is None]
    if not ready:
        return None
    first = by_due_time(journal.opened, ready)[0]
    record = journal.opened(first.key) or Record(first.key, StepStatus.RETRYING)
    lost = head.alone_losses + record.losses
    if lost >= limits.MAX_ALONE_LOSSES:
        return record_worker_lost(context.definition, journal, record, lost, context.now)
    more = head.lost_leases - head.alone_losses - limits.SUSPECT_LOST_LEASES - limits.HOSTS_LOST
    if more < 0 or record.hosts_lost == head.lost_leases:
        return None
    pause = min(limits.HOSTS_LOST_PAUSE * 2 ** min(more, 16), limits.HOSTS_LOST_CAP)
    waiting = replace(
        record,
        status=StepStatus.RETRYING,
        next_at=context.now + pause,
        error=f"its host was lost {head.lost_leases} times while it ran this step alone",
        code=None,
        hosts_lost=head.lost_leases,
    )
    return record_open(journal, waiting)
