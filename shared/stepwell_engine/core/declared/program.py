"""The program that a run of a declared workflow executes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from stepwell_engine.core.declared.decide import decide
from stepwell_engine.core.declared.definition import Definition
from stepwell_engine.core.declared.progress import Progress, compensation, step_rows
from stepwell_engine.core.declared.reasons import reason
from stepwell_engine.core.declared.settle import close, settle, settle_cancelled
from stepwell_engine.core.declared.subworkflow import (
    begin_child,
    child_not_started,
    child_started,
    settle_child,
)
from stepwell_engine.core.run.attempt import UncommittedOutcome
from stepwell_engine.core.run.child import (
    ChildEnded,
    ChildNamed,
    ChildNotStarted,
    ChildOutcome,
    ChildStarted,
)
from stepwell_engine.core.run.decision import Decision
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.inbox import InboxMessage
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.keys import StepKey, StepKeys
from stepwell_engine.core.run.overflow import Overflow
from stepwell_engine.core.run.view import Compensation, Records, StepRow


@dataclass(frozen=True, slots=True)
class DeclaredView:
    """A run of a declared workflow, as its reader sees it."""

    progress: Progress

    def rows(self) -> Sequence[StepRow]:
        """The steps in definition order."""
        return list(step_rows(self.progress))

    def compensation(self) -> Compensation:
        """How far it is compensated."""
        return compensation(self.progress)

    def reason(self) -> str | None:
        """Why it is not moving."""
        return reason(self.progress)


@dataclass(frozen=True, slots=True)
class DeclaredProgram:
    """One version of a declared workflow."""

    definition: Definition

    @property
    def keys(self) -> StepKeys:
        """The keys of its steps and compensations."""
        return self.definition.keys

    def decide(
        self,
        head: Head,
        journal: Journal,
        inbox: Mapping[str, InboxMessage],
        now: int,
        in_flight: frozenset[StepKey],
        overflow: Overflow,
    ) -> Decision:
        """The next instruction."""
        return decide(self.definition, head, journal, inbox, now, in_flight, overflow)

    def settle(self, journal: Journal, completed: UncommittedOutcome) -> Journal:
        """Record the outcome of an attempt."""
        return settle(
            self.definition,
            journal,
            completed.attempt,
            completed.outcome,
            completed.started,
            completed.finished,
        )

    def settle_child(self, journal: Journal, outcome: ChildOutcome, now: int) -> Journal:
        """Record what became of starting or cancelling a child run."""
        match outcome:
            case ChildNamed(start, child):
                step = self.definition.by_key[start.step]
                return begin_child(step, journal, start.attempt, child, now)
            case ChildStarted(start):
                return child_started(self.definition.by_key[start.step], journal)
            case ChildNotStarted(failed=failed):
                return child_not_started(self.definition, journal, failed, now)
            case ChildEnded(result=result):
                return settle_child(self.definition, journal, result, now)
            case unknown:
                assert_never(unknown)

    def settle_cancelled(
        self, journal: Journal, completed: UncommittedOutcome, cancelled_at: int
    ) -> Journal:
        """Record what a cancelled run's attempt in flight came to."""
        return settle_cancelled(
            self.definition,
            journal,
            completed.attempt,
            completed.outcome,
            completed.started,
            completed.finished,
            cancelled_at,
        )

    def close(self, journal: Journal, now: int) -> Journal:
        """Close the journal of a cancelled run."""
        return close(self.definition, journal, now)

    def view(self, head: Head, journal: Journal, records: Records, now: int) -> DeclaredView:
        """The run as its reader sees it."""
        return DeclaredView(Progress(self.definition, head, journal, records, now))

    def output_of(self, records: Records) -> StepKey | None:
        """The last top-level step that produced an output; compensations do not count."""
        for step in reversed(self.definition.steps):
            record = records.get(step.key)
            if record is not None and record.output is not None:
                return step.key
        return None

    def joined(self, key: StepKey) -> Sequence[StepKey]:
        """The children of the fan-out that stands before a join."""
        fanout = self.definition.steps[self.definition.owner(key) - 1]
        return [child.key for child in fanout.children]
