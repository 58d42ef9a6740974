"""A run's deadline: from then on nobody claims it, and whoever comes ends it as timed out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.run.status import Status
from stepwell_engine.limits import RUN_FORMAT, TICK
from stepwell_engine.ports import Done, Refused, Runs
from tests.contract.heads import (
    COMMIT,
    ENDED_STATUSES,
    LIVE_STATUSES,
    NOW,
    RUN,
    TOKEN,
    UNTIL,
    a_head,
    check_done,
    check_refused,
    held,
    pages,
    put,
)


def timed_out(head: Head, **fields: Any) -> Head:
    """A head after its time-out."""
    after = replace(head, status=Status.TIMED_OUT, ended_at=NOW, inbox_seq=head.inbox_seq + 1)
    return replace(after, format=RUN_FORMAT, **fields)


@pytest.mark.parametrize("lane", Lane)
def test_a_run_is_claimed_before_its_deadline_and_not_at_it(runs: Runs, lane: Lane) -> None:
    put(runs, a_head(deadline=NOW + 5, format=RUN_FORMAT))
    check_refused(runs, lambda: runs.claim(RUN, TOKEN, NOW + 5, UNTIL, lane))
    assert isinstance(runs.claim(RUN, TOKEN, NOW + 4, UNTIL, lane), Done)


def test_a_lease_that_is_over_is_not_taken_after_the_deadline(runs: Runs) -> None:
    put(runs, held(deadline=UNTIL + 5_000, format=RUN_FORMAT))
    check_refused(runs, lambda: runs.claim(RUN, "other", UNTIL + 5_000, UNTIL + 9_000))
    assert isinstance(runs.claim(RUN, "other", UNTIL + 4_999, UNTIL + 9_000), Done)


@pytest.mark.parametrize("put_head", [a_head, held])
@pytest.mark.parametrize("away", [1, 30_000, 60_000, 60_001, None])
def test_a_claim_of_an_overdue_run_wakes_it_at_its_deadline_at_the_latest(
    runs: Runs, put_head: Callable[..., Head], away: int | None
) -> None:
    now = UNTIL + TICK + 5_000
    deadline = None if away is None else now + away
    put(runs, put_head(wake_at=NOW - TICK, deadline=deadline, format=RUN_FORMAT))
    claimed = runs.claim(RUN, "other", now, now + 60_000)
    assert isinstance(claimed, Done)
    assert claimed.head.wake_at == now + min(60_000, 60_000 if away is None else away)


@pytest.mark.parametrize("status", LIVE_STATUSES)
def test_a_run_that_nobody_holds_is_timed_out_for_good(runs: Runs, status: Status) -> None:
    head = put(runs, a_head(status=status, deadline=NOW))
    check_done(runs, runs.time_out(RUN, NOW, 0), timed_out(head, wake_at=None))
    assert runs.due(UNTIL, None, 10) == ([], None)


def test_a_run_in_flight_keeps_its_lease_and_is_woken_when_that_is_over(runs: Runs) -> None:
    head = put(runs, held(deadline=NOW, wake_at=NOW, commit_seq=2, inbox_seq=3))
    check_done(runs, runs.time_out(RUN, NOW, 0), timed_out(head, wake_at=UNTIL))


@pytest.mark.parametrize("put_head", [a_head, held])
def test_a_child_has_to_notify_its_parent_at_once(
    runs: Runs, put_head: Callable[..., Head]
) -> None:
    head = put(runs, put_head(deadline=NOW, wake_at=UNTIL, parent="parent", depth=1))
    after = timed_out(head, notify_pending=True, wake_at=NOW)
    check_done(runs, runs.time_out(RUN, NOW, 0), after)
    assert [due.subject.id for due in pages(runs, NOW)] == [RUN]


@pytest.mark.parametrize("status", ENDED_STATUSES)
def test_an_ended_run_is_not_timed_out(runs: Runs, status: Status) -> None:
    put(runs, held(status=status, ended_at=NOW - 1, deadline=NOW))
    check_refused(runs, lambda: runs.time_out(RUN, NOW, 0))


@pytest.mark.parametrize(("stored", "seen"), [(0, 1), (1, 0), (2, 1)])
def test_another_generation_is_neither_timed_out_nor_cancelled(
    runs: Runs, stored: int, seen: int
) -> None:
    put(runs, a_head(deadline=NOW, generation=stored))
    check_refused(runs, lambda: runs.time_out(RUN, NOW, seen))
    check_refused(runs, lambda: runs.cancel(RUN, NOW, generation=seen))
    check_refused(runs, lambda: runs.cancel(RUN, NOW, cascade=True, generation=seen))
    assert isinstance(runs.time_out(RUN, NOW, stored), Done)


def test_a_run_that_does_not_exist_is_not_timed_out(runs: Runs) -> None:
    assert runs.time_out(RUN, NOW, 0) == Refused(None)


def test_only_an_outcome_is_recorded_once_a_run_is_timed_out(runs: Runs) -> None:
    head = put(runs, held(deadline=NOW))
    runs.time_out(RUN, NOW, 0)
    check_refused(runs, lambda: runs.commit(COMMIT))
    recorded = runs.commit(replace(COMMIT, expect="stopped", release=True, wake_at=None))
    assert isinstance(recorded, Done)
    assert recorded.head.status is Status.TIMED_OUT
    assert recorded.head.lease_token is None
    assert recorded.head.deadline == head.deadline


def test_a_timed_out_run_is_closed_like_a_cancelled_one(runs: Runs) -> None:
    head = put(runs, held(deadline=NOW, commit_seq=2))
    runs.time_out(RUN, NOW, 0)
    after = timed_out(
        head,
        journal=b"settled",
        commit_seq=3,
        lease_token=None,
        lease_expires_at=0,
        claimed_at=0,
        wake_at=None,
    )
    check_done(runs, runs.close(RUN, TOKEN, 2, b"settled"), after)
