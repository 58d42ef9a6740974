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
from stepwell_engine.ports import Revival
from tests.sim.faults import Faults
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
_REVIVED = 0.8
_MOST_GENERATIONS = 2
_OVERTAKEN, _SOON, _LATER = 40, 3_000, 200_000
_FINAL = ("depth_exceeded", "unknown_resource")


class Endings:
    """What a seed draws for its runs."""

    def __init__(self, seed: int, faults: Faults) -> None:
        self._faults = faults
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

    def signals(self, what: str, head: Head, now: int) -> list[int]:
        """When signals come that its end, or its revival, may overtake."""
        if self._on and what == "create" and head.deadline is not None:
            return [max(now, head.deadline - self._within(_OVERTAKEN)) for _ in range(6)]
        if self._on and what == "revive":
            return [now + self._within(most) for most in (_OVERTAKEN, _OVERTAKEN, _SOON)]
        return []

    def pause(self, what: str, head: Head) -> int | None:
        """After how many ms somebody revives a run that has just ended; None: nobody does."""
        if not self._on or what not in ("commit", "time_out", "close"):
            return None
        if head.status not in REVIVABLE or head.generation >= _MOST_GENERATIONS:
            return None
        if self._random.random() >= _REVIVED:
            return None
        return self._within(_SOON if what == "close" else self._random.choice((_SOON, _LATER)))

    def is_hinted(self, what: str) -> bool:
        """Whether who revives it comes to hint it: mostly not if a worker may come back."""
        if not self._faults.active or self._faults.profile.calm:
            return True
        return self._random.random() < (0.3 if what == "close" else 0.7)

    def _within(self, most: int) -> int:
        return int(self._random.random() * most)

    def overtakes(self, ledger: Ledger, token: str | None) -> bool:
        """Whether a revival comes right before a write: of a worker that has lost its lease, or,
        without a token, of somebody who sends a signal.
        """
        head = ledger.head
        ended = head.status in REVIVABLE and head.lease_token is None
        if not ended or head.generation >= _MOST_GENERATIONS:
            return False
        return self._random.random() < _REVIVED if token is None else token in ledger.lost

    def revival(
        self, ledger: Ledger, head: Head, now: int, is_live: Callable[[str], bool]
    ) -> Revival | None:
        """What retries a run that has ended, if it can go on from where it ended."""
        journal = revived(ledger, ledger.codec.decode(head.journal), is_live)
        if head.status not in REVIVABLE or journal is None:
            return None
        deadline = now + self._lasts() if self._random.random() < 0.5 else None
        data = ledger.codec.encode(journal)
        return Revival(head.run_id, head.generation, head.commit_seq, data, now, deadline)


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
