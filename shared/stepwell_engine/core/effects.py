"""Trying actions: one top-level step, the children of a fan-out, compensations. Pure.

All are a list of effects still to be done; some of it may be in flight, some of it backs off.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from stepwell_engine import limits
from stepwell_engine.core.definition import Step
from stepwell_engine.core.instructions import Park, Perform, Scene, Turn
from stepwell_engine.core.journal import Journal, Record
from stepwell_engine.core.run import Head, Status, StepStatus
from stepwell_engine.core.transitions import (
    act,
    breach_ceiling,
    ends,
    failed_record,
    record_failure,
)


@dataclass(frozen=True, slots=True)
class Effect:
    """An action to be done: a step, or a compensation (whose ordinal is that of its step)."""

    step: Step
    undo: bool = False

    @property
    def key(self) -> tuple[int, bool]:
        """Which record it makes."""
        return self.step.ordinal, self.undo


def attempt_all(scene: Scene, journal: Journal, todo: Sequence[Effect]) -> Turn:
    """Try what can be tried now, as many as may be at once; park if nothing can.

    `todo` is not empty. A new act begins only once the outcome that made room for it is recorded;
    what could be tried first begins first, so that a reader of the journal can tell what does.
    """
    hopeless = _hopeless(scene, journal, todo)
    if hopeless is not None:
        return Turn(hopeless)
    if journal.attempts + len(scene.flying) >= limits.MAX_RUN_ATTEMPTS:
        return Turn(journal, Perform(())) if scene.flying else Turn(breach_ceiling(journal))
    idle = [one for one in todo if one.key not in scene.flying]
    backing = {one.key: opened for one in idle if (opened := _backing_off(scene, journal, one))}
    ready = in_turn(journal.opened, (one for one in idle if one.key not in backing))
    room = at_once(scene.head) - len(scene.flying)
    room = min(room, limits.MAX_RUN_ATTEMPTS - journal.attempts - len(scene.flying))
    acts = tuple(act(scene, one.step, journal.opened(*one.key), one.undo) for one in ready[:room])
    soonest = min(map(ends, backing.values()), default=None)
    if acts or scene.flying:
        return Turn(journal, Perform(acts, soonest if room > len(acts) else None))
    return Turn(journal, Park(Status.PENDING, soonest or scene.now))


def at_once(head: Head) -> int:
    """How many actions of a run may be in flight.

    One, once its workers were lost again and again: so the one that is to blame is found.
    """
    return 1 if head.lost >= limits.SUSPECT_LOST else limits.CHILDREN_AT_ONCE


def in_turn(
    record_of: Callable[[int, bool], Record | None], ready: Iterable[Effect]
) -> list[Effect]:
    """Effects in the order in which they could be tried, those never tried yet first."""

    def ready_at(effect: Effect) -> int:
        record = record_of(*effect.key)
        return 0 if record is None else ends(record)

    return sorted(ready, key=ready_at)


def _backing_off(scene: Scene, journal: Journal, effect: Effect) -> Record | None:
    """The record of an effect, not in flight, whose next attempt is not due."""
    opened = journal.opened(*effect.key)
    return opened if opened is not None and scene.now < ends(opened) else None


def _hopeless(scene: Scene, journal: Journal, todo: Sequence[Effect]) -> Journal | None:
    """The journal of a run whose workers do not survive what it is about to do."""
    lost = scene.head.lost
    if lost < limits.MAX_LOST_IN_A_ROW or scene.flying:
        return None
    # One that backs off was not in flight.
    ready = [one for one in todo if _backing_off(scene, journal, one) is None]
    first = in_turn(journal.opened, ready or todo)[0]
    record = journal.opened(*first.key) or Record(
        first.step.ordinal, StepStatus.RETRYING, undo=first.undo
    )
    text = (
        f"the worker was lost {lost} times in a row while it ran this step "
        f"(attempt {record.attempt + 1}): it may exhaust memory or crash its process"
    )
    # The attempt that was lost is counted. When it began was never recorded.
    record = replace(record, attempt=record.attempt + 1)
    failed = failed_record(record, text, "worker_lost", scene.now)
    return record_failure(scene.definition, journal, failed)
