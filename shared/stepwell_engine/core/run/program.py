"""What a run executes. A worker knows programs, heads and journals, and no kind of step."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from stepwell_engine.core.run.attempt import UncommittedOutcome
from stepwell_engine.core.run.child import ChildOutcome
from stepwell_engine.core.run.decision import Decision
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.inbox import InboxMessage
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.keys import StepKey, StepKeys
from stepwell_engine.core.run.overflow import Overflow
from stepwell_engine.core.run.view import Records, RunView
from stepwell_engine.core.values.units import EpochMs


class Program(Protocol):
    """One version of what a run executes. Pure: time comes in, instructions go out."""

    @property
    def keys(self) -> StepKeys:
        """The keys of its records, and what stands for them in a journal."""
        ...

    def decide(
        self,
        head: Head,
        journal: Journal,
        inbox: Mapping[str, InboxMessage],
        now: EpochMs,
        in_flight: frozenset[StepKey],
        overflow: Overflow,
    ) -> Decision:
        """The next instruction for a run whose lease is held.

        The journal of the decision is the very one given if nothing has to be recorded first.
        `inbox` is what is not consumed yet, `overflow` what was read of its overflow under this
        lease; `in_flight` the attempts in flight with this worker.
        """
        ...

    def settle(self, journal: Journal, completed: UncommittedOutcome) -> Journal:
        """The journal with the outcome of an attempt recorded.

        An outcome that the run does not wait for (it is recorded already) is dropped.
        """
        ...

    def settle_child(self, journal: Journal, outcome: ChildOutcome, now: EpochMs) -> Journal:
        """The journal with what became of starting or cancelling a child run recorded."""
        ...

    def settle_cancelled(
        self, journal: Journal, completed: UncommittedOutcome, cancelled_at: EpochMs
    ) -> Journal:
        """Record what a cancelled run's attempt in flight came to; nothing moves."""
        ...

    def close(self, journal: Journal, now: EpochMs) -> Journal:
        """The journal of a cancelled run: what it stood at becomes cancelled."""
        ...

    def view(self, head: Head, journal: Journal, records: Records, now: EpochMs) -> RunView:
        """The run as its reader sees it."""
        ...

    def output_of(self, records: Records) -> StepKey | None:
        """The key of the record whose output is the run's; None where none has one."""
        ...

    def joined(self, key: StepKey) -> Sequence[StepKey]:
        """The keys of the records that make the output of a join: an object with a member each."""
        ...
