"""What a run does next: head, inbox and time in, an instruction out. Pure.

Times that end something (a sleep, a backoff, a wait) are read from the journal only:
`ready_at` and `wake_at` are caches for the store.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from stepwell_engine.core.declared.actions import attempt_all
from stepwell_engine.core.declared.compensate import compensate
from stepwell_engine.core.declared.context import DecisionContext, StepDecision
from stepwell_engine.core.declared.definition import Definition, Kind, Step
from stepwell_engine.core.declared.fanout import fanout, join
from stepwell_engine.core.declared.subworkflow import subworkflow
from stepwell_engine.core.declared.waits import sleep, wait_for_signal
from stepwell_engine.core.run.decision import Decision, Finish
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.keys import StepKey
from stepwell_engine.core.run.overflow import NOTHING_READ, Overflow
from stepwell_engine.core.run.status import Status


def decide(
    definition: Definition,
    head: Head,
    journal: Journal,
    inbox: Mapping[str, InboxMessage],
    now: int,
    in_flight: frozenset[StepKey] = frozenset(),
    overflow: Overflow = NOTHING_READ,
) -> Decision:
    """The next instruction for a run whose lease is held.

    `inbox` is what is not consumed yet, `overflow` what was read of its overflow; `in_flight` the
    attempts in flight with this worker.
    """
    consumed, taken = _stale(journal, inbox), tuple[int, ...]()
    absent = False
    while True:
        left = {key: message for key, message in inbox.items() if key not in consumed}
        context = DecisionContext(definition, head, left, in_flight, now, overflow)
        decision = _decide_once(context, journal)
        if decision.journal.place != journal.place:
            # The commit of this journal resets the counts.
            head = replace(head, lost_leases=0, alone_losses=0)
        journal, consumed = decision.journal, consumed + decision.consumed
        taken, absent = taken + decision.taken, absent or decision.absent
        if decision.next is not None:
            return Decision(journal, decision.next, consumed, taken, absent, decision.hold)


def _decide_once(context: DecisionContext, journal: Journal) -> StepDecision:
    if journal.failure is not None:
        return compensate(context, journal, journal.failure)
    if journal.position >= len(context.definition.steps):
        return StepDecision(journal, Finish(Status.SUCCEEDED))
    return _decide_step(context, context.definition.steps[journal.position], journal)


def _decide_step(context: DecisionContext, step: Step, journal: Journal) -> StepDecision:
    """One arm for each kind of step."""
    match step.kind:
        case Kind.ENQUEUE | Kind.SQL | Kind.WEBHOOK | Kind.FUNCTION:
            return attempt_all(context, journal, (step,))
        case Kind.SLEEP:
            return sleep(context, step, journal)
        case Kind.WAIT_FOR_SIGNAL:
            return wait_for_signal(context, step, journal)
        case Kind.FANOUT:
            return fanout(context, step, journal)
        case Kind.JOIN:
            return join(context, step, journal)
        case Kind.SUBWORKFLOW:
            return subworkflow(context, step, journal)
        case unknown:
            assert_never(unknown)


def _stale(journal: Journal, inbox: Mapping[str, InboxMessage]) -> tuple[str, ...]:
    """Ends of children that nobody waits for any more: of an attempt that was given up."""
    awaited = {record.child for record in journal.open}
    return tuple(
        key
        for key, message in inbox.items()
        if message.kind is MessageKind.CHILD and key not in awaited
    )
