"""What the deciding functions look at, and what one of them comes to."""

from collections.abc import Mapping
from dataclasses import dataclass

from stepwell_engine.core.declared.definition import Definition
from stepwell_engine.core.run.decision import Instruction
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.inbox import InboxMessage
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.keys import StepKey
from stepwell_engine.core.run.overflow import NOTHING_READ, Overflow


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """What a decision is made from. `in_flight` are the attempts in flight with this worker.

    `overflow` is what was read of the inbox's overflow; `inbox` the rest, without what is consumed.
    """

    definition: Definition
    head: Head
    inbox: Mapping[str, InboxMessage]
    in_flight: frozenset[StepKey]
    now: int
    overflow: Overflow = NOTHING_READ


@dataclass(frozen=True, slots=True)
class StepDecision:
    """What one look at a run came to; without `next`, look again."""

    journal: Journal
    next: Instruction | None = None
    consumed: tuple[str, ...] = ()
    taken: tuple[int, ...] = ()
    absent: bool = False
    hold: bool = False
