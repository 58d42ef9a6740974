"""Runs with a deadline, and runs that are revived after their end; nothing else has such yet.

Only some worlds have them.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.head import Head, wake_time
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.status import REVIVABLE, Status, StepStatus
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.ports import Clock, Dispatcher, Revival, Runs
from tests.sim.ledger import Ledger
from tests.sim.scheduler import SKEW, Violation

_SHARE = 0.25
_DEADLINES = (
    5_000,
    30_000,
    90_000,
    900_000,
    7_200_000,
)  # about so many ms after the start
_REVIVED = 0.7
_MOST_GENERATIONS = 2
_SOON, _LATER = 3_000, 200_000
_FINAL = ("depth_exceeded", "unknown_resource")


class Endings:
    """What a seed draws for its runs."""

    def __init__(self, seed: int) -> None:
        self._random = Random(f"endings {seed}")
        self._on = self._random.random() < _SHARE
        self._deadlines: dict[str, int | None] = {}

    def with_deadline(self, head: Head) -> Head:
        """A run about to be created, with its deadline if it gets one: always the same."""
        if not self._on:
            return head
        if head.run_id not in self._deadlines:
            lasts = self._lasts() if self._random.random() < 0.6 else None
            self._deadlines[head.run_id] = None if lasts is None else head.created_at + lasts
        deadline = self._deadlines[head.run_id]
        if deadline is None:
            return head
        wake_at = None if head.wake_at is None else wake_time(head.wake_at, deadline)
        return replace(head, deadline=deadline, wake_at=wake_at, format=limits.RUN_FORMAT)

    def _lasts(self) -> int:
        return int(self._random.choice(_DEADLINES) * (0.5 + self._random.random()))

    def pause(self, ledger: Ledger) -> int | None:
        """After how many ms somebody revives a run that has just ended; None: nobody does."""
        head = ledger.head
        if not self._on or head.status not in REVIVABLE or head.generation >= _MOST_GENERATIONS:
            return None
        if self._random.random() >= _REVIVED:
            return None
        return int(self._random.random() * self._random.choice((_SOON, _LATER)))

    def revive(
        self,
        ledger: Ledger,
        runs: Runs,
        dispatcher: Dispatcher,
        clock: Clock,
        is_live: Callable[[str], bool],
    ) -> None:
        """Retry a run that has ended, unless it cannot go on from where it ended."""
        head = runs.get(ledger.head.run_id)
        if head is None or head.status not in REVIVABLE:
            return
        journal = revived(ledger, ledger.codec.decode(head.journal), is_live)
        if journal is None:
            return
        now = clock.now()
        deadline = now + self._lasts() if self._random.random() < 0.5 else None
        data = ledger.codec.encode(journal)
        written = runs.revive(
            Revival(head.run_id, head.generation, head.commit_seq, data, now, deadline)
        )
        if written.head is not None and written.head.live:
            dispatcher.hint(about_run(head.run_id, head.project))


def revived(ledger: Ledger, journal: Journal, is_live: Callable[[str], bool]) -> Journal | None:
    """The journal from which a run goes on, without the records that did not succeed.

    None if it cannot: something is compensated, such a record stands on a page, or what was in
    flight when it timed out has moved nothing.
    """
    step = ledger.step
    if step is None or ledger.succeeded(step.key):
        return None
    if ledger.head.status is Status.TIMED_OUT and step.kind is Kind.JOIN:
        return None
    failure = journal.failure
    if failure is not None and (failure.step is None or failure.code in _FINAL):
        return None
    if journal.compensating is not None or any(map(ledger.compensates, ledger.records)):
        return None
    dropped = [one for one in journal.records if one.status is not StepStatus.SUCCEEDED]
    paged = [one for one in ledger.paged if one.status is not StepStatus.SUCCEEDED]
    called = [one.child for one in (*dropped, *journal.open) if one.child is not None]
    if paged or any(map(is_live, called)):
        return None
    kept = tuple(one for one in journal.records if one.status is StepStatus.SUCCEEDED)
    return replace(journal, records=kept, open=(), failure=None)


def check_revived(ledger: Ledger, old: Head, new: Head, now: int) -> None:
    """A run goes on in a new generation, from what it had recorded. Properties 1, 3, 4 and 10."""
    if old.status not in REVIVABLE or (new.generation, new.commit_seq) != (
        old.generation + 1,
        old.commit_seq + 1,
    ):
        raise Violation(10, f"a run that is {old.status} was revived")
    if old.lease_token is not None and now <= old.lease_expires_at:
        raise Violation(4, f"revived while the lease of {old.lease_token} was in force")
    if new.notify_pending or new.lease_token is not None or new.lost_leases or new.ended_at:
        raise Violation(3, f"revived, but as {new}")
    if new.told != ledger.told:
        raise Violation(3, f"told: {new.told}, but its parent was told: {ledger.told}")
    before, journal = ledger.journal, ledger.codec.decode(new.journal)
    if journal.pages != before.pages or journal.attempts != before.attempts:
        raise Violation(1, "revived with other pages")
    ledger.records = {one.key: one for one in (*ledger.paged, *journal.records)}
    ledger.executions = [one for one in ledger.executions if one.key in ledger.records]
    ledger.children = {
        child: (key, attempt if key in ledger.records else 0)  # of an earlier generation
        for child, (key, attempt) in ledger.children.items()
    }
    ledger.unrecorded, ledger.stranded = [], []
    ledger.deferred.clear()
    ledger.journal = journal
    ledger.restart(now)


def check_timed_out(old: Head, now: int) -> None:
    """A run was timed out: it was live, and its deadline is over. Property 10."""
    if not old.live:
        raise Violation(10, f"a run that is {old.status} was timed out")
    if old.deadline is None or now + SKEW < old.deadline:
        raise Violation(10, f"timed out before its deadline, {old.deadline}")


def check_in_time(head: Head, now: int, what: str) -> None:
    """Nothing begins once the deadline is over by every clock. Property 10."""
    if head.live and head.deadline is not None and head.deadline + SKEW < now:
        raise Violation(10, f"{what} {now - head.deadline} ms after the deadline")


def ends_as(head: Head) -> tuple[Status, int | None]:
    """How a run has ended, and when."""
    return head.status, head.ended_at
