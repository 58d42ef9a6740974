"""Programs that keep each attempt with its step's record, as none does yet; and what must be kept.

Only some worlds have them: declared runs keep no history.
"""

from dataclasses import replace
from random import Random

from stepwell_engine import limits
from stepwell_engine.core.declared.program import DeclaredProgram
from stepwell_engine.core.run.attempt import Failed, Succeeded, UncommittedOutcome, WorkerLost
from stepwell_engine.core.run.attempt_history import record_attempt
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.records import AttemptRecord, Record
from stepwell_engine.core.run.status import StepStatus
from tests.sim.ledger import Execution, Ledger
from tests.sim.scheduler import SKEW, Violation

_SHARE = 0.3
_CROWD = 8  # children whose errors may be so long that histories are cut


def draw_program(seed: int) -> type[DeclaredProgram]:
    """What the runs of a seed execute."""
    return KeepsHistory if Random(f"history {seed}").random() < _SHARE else DeclaredProgram


class KeepsHistory(DeclaredProgram):
    """A declared workflow whose records have their attempts."""

    __slots__ = ()

    def settle(self, journal: Journal, completed: UncommittedOutcome) -> Journal:
        """Record the outcome, and the attempt."""
        return _kept(journal, super().settle(journal, completed), completed)

    def settle_cancelled(
        self, journal: Journal, completed: UncommittedOutcome, cancelled_at: int
    ) -> Journal:
        """Record the outcome, and the attempt."""
        settled = super().settle_cancelled(journal, completed, cancelled_at)
        return _kept(journal, settled, completed)


def _kept(before: Journal, after: Journal, completed: UncommittedOutcome) -> Journal:
    if after.attempts == before.attempts or isinstance(completed.outcome, WorkerLost):
        return after  # recorded already, or deferred

    def kept(record: Record) -> Record:
        if record.key != completed.attempt.step:
            return record
        failed = completed.outcome if isinstance(completed.outcome, Failed) else None
        attempt = AttemptRecord(
            completed.attempt.number,
            StepStatus.SUCCEEDED if failed is None else StepStatus.FAILED,
            completed.started,
            completed.finished,
            None if failed is None else failed.message,
            None if failed is None else failed.code,
        )
        return record_attempt(record, attempt)

    return replace(
        after, records=tuple(map(kept, after.records)), open=tuple(map(kept, after.open))
    )


def check_histories(ledger: Ledger, program: type[DeclaredProgram]) -> None:
    """Every record has the newest of its recorded attempts, as they happened. Property 1."""
    crowded = any(len(step.children) >= _CROWD for step in ledger.definition.steps)
    for key, record in ledger.records.items():
        made = [
            one
            for one in ledger.executions
            if one.key == key and one.recorded and isinstance(one.outcome, Succeeded | Failed)
        ]
        made.sort(key=lambda one: one.attempt)
        kept = made[-limits.HISTORY_ATTEMPTS :] if program is KeepsHistory else []
        found = record.history
        expected = kept[len(kept) - len(found) :] if crowded else kept
        same = [one.number for one in found] == [one.attempt for one in expected]
        if not same or not all(map(_tells, found, expected)):
            attempts = [(one.attempt, one.ended_at) for one in made]
            raise Violation(1, f"{key}: {attempts} were recorded, its history is {found}")


def _tells(found: AttemptRecord, made: Execution) -> bool:
    """Whether this is what happened."""
    if found.finished_at < made.ended_at - SKEW or found.finished_at < found.started_at - 2 * SKEW:
        return False
    if isinstance(made.outcome, Succeeded):
        return (found.outcome, found.error) == (StepStatus.SUCCEEDED, None)
    if not isinstance(made.outcome, Failed) or found.outcome is not StepStatus.FAILED:
        return False
    error = found.error or ""
    cut = len(error) >= limits.HISTORY_ERRORS // limits.HISTORY_ATTEMPTS
    text = made.outcome.message
    return found.code == made.outcome.code and (error == text or (cut and text.startswith(error)))
