"""Defects in how a host stops, and in how suspects take turns."""

from functools import partial
from typing import Any

from stepwell_engine.core.run.attempt import Attempt, UncommittedOutcome
from stepwell_engine.core.run.decision import Decision, StartAttempts
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.errors import StoreError
from stepwell_engine.ports import Commit, Done
from stepwell_engine.service.worker import commits
from stepwell_engine.service.worker import tools as working
from stepwell_engine.service.worker.abandon import Abandoned
from stepwell_engine.service.worker.leased_run import LeasedRun
from stepwell_engine.service.worker.persistence import Persistence
from stepwell_engine.service.worker.tools import Tools
from tests.sim.mutation import Mutation, leased_run, patch

_OUTCOME = working._outcome
_RELEASE = commits.release_of
_SETTLED = Abandoned._settled
_WORKER = "stepwell_engine.service.worker."
_ACTIONS = "stepwell_engine.core.declared.actions."


def _releases_nothing(_tools: Tools, _within: int) -> int:
    return 0


def _waits_for_no_claim(tools: Tools, within: int) -> int:
    ends = tools.clock.now() + within
    return sum(not run.abandon(ends) for run in list(tools.process.held.values()))


def _drops_what_is_in_hand(_run: Abandoned, _head: Head, _stored: Journal) -> Any:
    return (), None


def _records_all(run: Abandoned, head: Head, journal: Journal) -> Any:
    for one in run.outcomes:
        journal = run.program.settle(journal, one)
    if not run.outcomes:
        return (), None
    now = run.tools.clock.now()
    return run.outcomes, run.program.decide(
        head, journal, head.inbox, now, frozenset(), run.overflow
    )


def _settles_only(run: Abandoned, head: Head, stored: Journal) -> Any:
    outcomes, decision = _SETTLED(run, head, stored)
    if decision is None or decision.hold:
        return outcomes, decision
    journal = stored
    for one in outcomes:
        journal = run.program.settle(journal, one)
    return outcomes, Decision(journal, StartAttempts(()))


def _under_any_token(run: Abandoned, ends: int) -> bool:
    tools, head = run.tools, run.head
    persist = Persistence(tools.clock, tools.process.refusals, head.run_id, ends)
    try:
        while head.live and head.lease_token is not None:
            written = persist(partial(tools.runs.commit, run._commit(head)))
            if isinstance(written, Done) or written.head is None:
                break
            head = written.head
    except StoreError:
        return False
    return True


def _begins_anyway(tools: Tools, attempt: Attempt, started: int, alone: bool) -> Any:
    return UncommittedOutcome(attempt, _OUTCOME(tools, attempt, alone), started, tools.clock.now())


class KeepsItsPlace(LeasedRun):
    def _take(self, head: Head, journal: Journal) -> None:
        leave = self._place.leave
        self._place.leave = lambda: None  # type: ignore[method-assign]
        super()._take(head, journal)
        self._place.leave = leave  # type: ignore[method-assign]


def _looked_at_late(head: Head, ready_at: int, wake_at: int | None = None) -> Commit:
    return _RELEASE(head, ready_at, None if wake_at is None else wake_at + 600_000)


STOPS: tuple[Mutation, ...] = (
    patch(
        "a host that stops releases nothing",
        _WORKER + "advance.abandon_all",
        _releases_nothing,
        4,
        5,
    ),
    patch(
        "a host that stops waits for no claim",
        _WORKER + "advance.abandon_all",
        _waits_for_no_claim,
        4,
        5,
    ),
    patch(
        "a host that stops forgets what it has claimed",
        _WORKER + "advance.Advance._took",
        lambda *_: None,
        4,
        5,
    ),
    patch(
        "a host that stops drops the outcomes in hand",
        _WORKER + "abandon.Abandoned._settled",
        _drops_what_is_in_hand,
        5,
    ),
    patch(
        "a host that stops records a failure alone",
        _WORKER + "abandon.Abandoned._settled",
        _records_all,
        9,
    ),
    patch(
        "a host that stops leaves a failure to others",
        _WORKER + "abandon.Abandoned._settled",
        _settles_only,
        2,
    ),
    patch(
        "a host that stops releases under any token",
        _WORKER + "abandon.Abandoned.release",
        _under_any_token,
        4,
    ),
    patch(
        "an attempt begins although its host stops",
        _WORKER + "leased_run.run_attempt",
        _begins_anyway,
        4,
    ),
    patch(
        "a suspect that waits is looked at late", _WORKER + "advance.release_of", _looked_at_late, 3
    ),
    leased_run("a suspect that moved keeps its place", KeepsItsPlace, 3),
    patch(
        "whoever is alone runs attempts beside each other once the run moved",
        _ACTIONS + "at_once",
        lambda head: 1 if head.suspect else 8,
        5,
    ),
)
