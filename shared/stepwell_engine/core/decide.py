"""What a run does next: head, mail and time in, an instruction out. Pure.

Times that end something (a sleep, a backoff, a wait) are read from the journal only:
`ready_at` and `wake_at` are caches for the store.
"""

from collections.abc import Mapping
from dataclasses import replace

from stepwell_engine.core.compensate import unwind
from stepwell_engine.core.definition import ACTION_KINDS, Definition, Kind, Step
from stepwell_engine.core.effects import Effect, attempt_all
from stepwell_engine.core.fanout import fanout, join
from stepwell_engine.core.instructions import Decision, EffectKey, Finish, Scene, Turn
from stepwell_engine.core.journal import Journal
from stepwell_engine.core.run import Head, Mail, Status
from stepwell_engine.core.subworkflow import subworkflow
from stepwell_engine.core.waits import sleep, wait_for_signal


def decide(
    definition: Definition,
    head: Head,
    journal: Journal,
    mail: Mapping[str, Mail],
    now: int,
    flying: frozenset[EffectKey] = frozenset(),
) -> Decision:
    """The next instruction for a run whose lease is held.

    `mail` is what is not consumed yet; `flying` the effects in flight with this worker.
    """
    consumed = _stale(journal, mail)
    absent = False
    while True:
        left = {key: letter for key, letter in mail.items() if key not in consumed}
        turn = _look(Scene(definition, head, left, flying, now), journal)
        if turn.journal is not journal:
            head = replace(head, lost=0)  # what comes next has lost no worker yet
        journal, consumed = turn.journal, consumed + turn.consumed
        absent = absent or turn.absent
        if turn.next is not None:
            return Decision(journal, turn.next, consumed, absent, turn.hold)


def _look(scene: Scene, journal: Journal) -> Turn:
    if journal.failure is not None:
        return unwind(scene, journal, journal.failure)
    if journal.position >= len(scene.definition.steps):
        return Turn(journal, Finish(Status.SUCCEEDED))
    return _arm(scene, scene.definition.steps[journal.position], journal)


def _arm(scene: Scene, step: Step, journal: Journal) -> Turn:
    """One arm for each kind of step."""
    if step.kind in ACTION_KINDS:
        return attempt_all(scene, journal, (Effect(step),))
    match step.kind:
        case Kind.SLEEP:
            return sleep(scene, step, journal)
        case Kind.WAIT_FOR_SIGNAL:
            return wait_for_signal(scene, step, journal)
        case Kind.FANOUT:
            return fanout(scene, step, journal)
        case Kind.JOIN:
            return join(scene, step, journal)
        case _:
            return subworkflow(scene, step, journal)


def _stale(journal: Journal, mail: Mapping[str, Mail]) -> tuple[str, ...]:
    """Mail of children that nobody waits for any more: an attempt that was given up."""
    awaited = {record.child for record in journal.open}
    return tuple(
        key for key, letter in mail.items() if letter.kind == "child" and key not in awaited
    )
