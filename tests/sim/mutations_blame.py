"""Defects in whom the loss of a worker counts against."""

from dataclasses import replace
from typing import Any

from stepwell_engine.core.run import transitions
from stepwell_engine.core.run.decision import Decision
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.ports import Commit
from stepwell_engine.service.worker import commits
from stepwell_engine.service.worker.advance import Advance
from stepwell_engine.service.worker.leased_run import LeasedRun
from tests.sim.links import Store
from tests.sim.mutation import Mutation, advance, leased_run, patch, store

_COMMIT = commits.commit_of
_LOST = transitions.lost_record
_CORE = "stepwell_engine.core.declared."
_LIMITS = "stepwell_engine.limits."


def _any_outcome_clears(
    head: Head, packed: Any, decision: Decision, before: Journal, now: int, **rest: bool
) -> Commit:
    commit = _COMMIT(head, packed, decision, before, now, **rest)
    return replace(commit, progress=decision.journal is not before)


class LaneIsNotNoted(Store):
    def _claimed(self, head: Head, token: str, now: int, until: int, lane: Lane) -> Head:
        return super()._claimed(head, token, now, until, Lane.HOST)


class HostsCount(Store):
    def _claimed(self, head: Head, token: str, now: int, until: int, lane: Lane) -> Head:
        return super()._claimed(head, token, now, until, Lane.ALONE)


class LaneStaysNoted(Store):
    def _committed(self, head: Head, commit: Commit) -> Head:
        after = super()._committed(head, commit)
        return replace(after, alone_losses=head.alone_losses)


class SharedLaneKeepsSuspects(Advance):
    def run(self, *given: Any, lane: Lane = Lane.HOST, **named: Any) -> None:
        super().run(*given, lane=Lane.ALONE if lane is Lane.SHARED else lane, **named)


class NotIsolated(LeasedRun):
    @property
    def _in_child(self) -> bool:
        return False


def _eight(_: Head) -> int:
    return 8


def _as_if_nothing(record: Any, message: str, now: int) -> Any:
    return replace(_LOST(record, message, now), losses=record.losses)


BLAME: tuple[Mutation, ...] = (
    patch(
        "a sibling's outcome clears the losses",
        "stepwell_engine.service.worker.leased_run.commit_of",
        _any_outcome_clears,
        5,
    ),
    store("losses of the lane are not counted", LaneIsNotNoted, 5),
    store("losses of hosts count against an attempt", HostsCount, 5),
    store("a recorded outcome leaves the losses of the lane", LaneStaysNoted, 5),
    advance("the shared lane keeps suspects", SharedLaneKeepsSuspects, 5),
    leased_run("a suspect's attempt shares its process", NotIsolated, 5),
    patch("a suspect's attempts run beside each other", _CORE + "actions.at_once", _eight, 2, 5),
    patch("a child that died is not counted", _CORE + "settle.lost_record", _as_if_nothing, 5),
    patch("a suspect after four losses", _LIMITS + "SUSPECT_LOST_LEASES", 4, 5),
    patch("given up after four losses alone", _LIMITS + "MAX_ALONE_LOSSES", 4, 5),
    patch("given up after six losses alone", _LIMITS + "MAX_ALONE_LOSSES", 6, 5),
    patch("what may end its host never waits", _LIMITS + "HOSTS_LOST", 99, 5),
)
