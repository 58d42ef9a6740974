"""Claiming a run and extending its lease."""

from dataclasses import replace
from typing import Any

import pytest

from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.run.status import Status
from stepwell_engine.limits import CLOCK_MARGIN, RUN_FORMAT, SUSPECT_LOST_LEASES, TICK
from stepwell_engine.ports import Done, Refused, Runs, Written
from tests.contract.heads import (
    COMMIT,
    ENDED_STATUSES,
    LIVE_STATUSES,
    NOW,
    OTHER,
    RUN,
    TOKEN,
    UNTIL,
    a_head,
    check_done,
    check_refused,
    held,
    inbox,
    put,
)


def claim(runs: Runs, token: str = TOKEN, now: int = NOW, lane: Lane = Lane.HOST) -> Written:
    return runs.claim(RUN, token, now, now + 60_000, lane)


def test_a_claim_takes_the_lease_and_moves_nothing_else(runs: Runs) -> None:
    head = put(
        runs,
        a_head(inbox_seq=2, commit_seq=3, lost_leases=1, inbox=inbox([1, 2]), wake_at=NOW + 9),
    )
    check_done(
        runs, claim(runs), replace(head, lease_token=TOKEN, lease_expires_at=UNTIL, claimed_at=NOW)
    )


def test_a_run_that_does_not_exist_cannot_be_claimed(runs: Runs) -> None:
    assert claim(runs) == Refused(None)


@pytest.mark.parametrize("status", LIVE_STATUSES)
def test_a_live_run_can_be_claimed(runs: Runs, status: Status) -> None:
    head = put(runs, a_head(status=status))
    check_done(
        runs, claim(runs), replace(head, lease_token=TOKEN, lease_expires_at=UNTIL, claimed_at=NOW)
    )


@pytest.mark.parametrize("status", ENDED_STATUSES)
def test_an_ended_run_cannot_be_claimed(runs: Runs, status: Status) -> None:
    put(runs, a_head(status=status))
    check_refused(runs, lambda: claim(runs))


@pytest.mark.parametrize("status", ENDED_STATUSES)
def test_an_ended_run_whose_lease_is_over_cannot_be_claimed(runs: Runs, status: Status) -> None:
    put(runs, held(status=status, lease_expires_at=0))
    check_refused(runs, lambda: claim(runs, OTHER))


def test_a_run_that_is_ready_now_can_be_claimed(runs: Runs) -> None:
    put(runs, a_head(ready_at=NOW))
    assert isinstance(claim(runs), Done)


def test_a_run_that_is_ready_a_millisecond_later_cannot_be_claimed(runs: Runs) -> None:
    put(runs, a_head(ready_at=NOW + 1))
    check_refused(runs, lambda: claim(runs))


def test_a_lost_lease_does_not_make_a_run_ready(runs: Runs) -> None:
    put(runs, held(lease_expires_at=0, ready_at=NOW + 1))
    check_refused(runs, lambda: claim(runs, OTHER))


@pytest.mark.parametrize("after", [-60_000, 0, CLOCK_MARGIN])
def test_a_lease_holds_until_a_margin_after_its_end(runs: Runs, after: int) -> None:
    put(runs, held())
    check_refused(runs, lambda: claim(runs, OTHER, UNTIL + after))


def test_a_lease_past_the_margin_is_taken_and_counted_as_lost(runs: Runs) -> None:
    head = put(runs, held(lost_leases=2))
    now = UNTIL + CLOCK_MARGIN + 1
    after = replace(
        head, lease_token=OTHER, lease_expires_at=now + 60_000, claimed_at=now, lost_leases=3
    )
    check_done(runs, claim(runs, OTHER, now), after)


def test_a_repeated_claim_is_done_and_changes_nothing(runs: Runs) -> None:
    put(runs, a_head())
    first = claim(runs)
    check_done(runs, claim(runs, now=NOW + 500), held(wake_at=NOW))
    assert claim(runs) == first


def test_a_repeated_claim_is_done_even_when_the_lease_is_over(runs: Runs) -> None:
    head = put(runs, held())
    check_done(runs, claim(runs, now=UNTIL + CLOCK_MARGIN + 1), head)


def test_a_repeated_claim_of_a_run_cancelled_meanwhile_shows_that(runs: Runs) -> None:
    head = put(runs, held(status=Status.CANCELLED))
    check_done(runs, claim(runs), head)


def test_extend_moves_until_and_wake_at(runs: Runs) -> None:
    head = put(runs, held(commit_seq=4))
    written = runs.extend(RUN, TOKEN, UNTIL + 600_000, UNTIL + 600_001)
    check_done(
        runs, written, replace(head, lease_expires_at=UNTIL + 600_000, wake_at=UNTIL + 600_001)
    )


def test_a_repeated_extend_is_done(runs: Runs) -> None:
    head = put(runs, held())
    check_done(runs, runs.extend(RUN, TOKEN, UNTIL, UNTIL), replace(head, wake_at=UNTIL))


def test_a_late_extend_does_not_shorten_the_lease(runs: Runs) -> None:
    put(runs, held())
    check_refused(runs, lambda: runs.extend(RUN, TOKEN, UNTIL - 1, UNTIL - 1))


def test_extend_by_another_token_is_refused(runs: Runs) -> None:
    put(runs, held())
    check_refused(runs, lambda: runs.extend(RUN, OTHER, UNTIL + 1, UNTIL + 1))


def test_extend_without_a_lease_is_refused(runs: Runs) -> None:
    put(runs, a_head())
    check_refused(runs, lambda: runs.extend(RUN, TOKEN, UNTIL + 1, UNTIL + 1))


@pytest.mark.parametrize("status", ENDED_STATUSES)
def test_extend_of_an_ended_run_is_refused(runs: Runs, status: Status) -> None:
    put(runs, held(status=status))
    check_refused(runs, lambda: runs.extend(RUN, TOKEN, UNTIL + 1, UNTIL + 1))


def test_extend_of_a_run_that_does_not_exist_is_refused(runs: Runs) -> None:
    assert runs.extend(RUN, TOKEN, UNTIL, UNTIL) == Refused(None)


@pytest.mark.parametrize("expired", [False, True])
@pytest.mark.parametrize(("overdue", "moves"), [(0, False), (TICK, False), (TICK + 1, True)])
def test_a_claim_of_a_run_that_is_overdue_by_more_than_a_tick_moves_its_wake_at(
    runs: Runs, expired: bool, overdue: int, moves: bool
) -> None:
    head = a_head(wake_at=NOW - overdue)
    if expired:
        ended = NOW - CLOCK_MARGIN - 1
        head = replace(head, lease_token=OTHER, lease_expires_at=ended, claimed_at=ended)
    put(runs, head)
    claimed = claim(runs)
    assert isinstance(claimed, Done)
    assert claimed.head.wake_at == (NOW + 60_000 if moves else NOW - overdue)
    assert claimed.head.lost_leases == expired


# --- lanes ----------------------------------------------------------------------------------------

OVER = UNTIL + CLOCK_MARGIN + 1


@pytest.mark.parametrize("lane", Lane)
@pytest.mark.parametrize("alone", [False, True])
def test_a_lease_that_is_over_counts_against_whom_its_holder_was_alone_with(
    runs: Runs, lane: Lane, alone: bool
) -> None:
    head = put(runs, held(alone=alone, alone_losses=2, lost_leases=1, format=RUN_FORMAT))
    lease: dict[str, Any] = {
        "lease_token": OTHER,
        "lease_expires_at": OVER + 60_000,
        "claimed_at": OVER,
    }
    taken = replace(head, **lease, lost_leases=2, alone=lane is Lane.ALONE, alone_losses=2 + alone)
    check_done(runs, claim(runs, OTHER, OVER, lane), taken)


@pytest.mark.parametrize("lane", Lane)
def test_only_a_claim_in_the_lane_alone_says_so_and_raises_the_format(
    runs: Runs, lane: Lane
) -> None:
    head = put(runs, a_head())
    lease: dict[str, Any] = {"lease_token": TOKEN, "lease_expires_at": UNTIL, "claimed_at": NOW}
    alone = lane is Lane.ALONE
    taken = replace(head, **lease, alone=alone, format=RUN_FORMAT if alone else head.format)
    check_done(runs, claim(runs, lane=lane), taken)


@pytest.mark.parametrize("lane", Lane)
@pytest.mark.parametrize("lost", [SUSPECT_LOST_LEASES - 1, SUSPECT_LOST_LEASES])
def test_a_suspect_is_not_claimed_in_the_shared_lane(runs: Runs, lane: Lane, lost: int) -> None:
    free = put(runs, a_head(lost_leases=lost))
    if lane is Lane.SHARED and lost == SUSPECT_LOST_LEASES:
        check_refused(runs, lambda: claim(runs, lane=lane))
    else:
        assert isinstance(claim(runs, lane=lane), Done)
    assert runs.get(free.run_id) is not None


def test_a_suspect_whose_lease_is_over_is_not_claimed_in_the_shared_lane(runs: Runs) -> None:
    put(runs, held(lost_leases=SUSPECT_LOST_LEASES))
    check_refused(runs, lambda: claim(runs, OTHER, OVER, Lane.SHARED))


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("progress", [False, True])
def test_a_commit_clears_what_it_says_and_a_release_the_lane(
    runs: Runs, recorded: bool, progress: bool
) -> None:
    head = put(runs, held(alone=True, alone_losses=2, lost_leases=3, format=RUN_FORMAT))
    commit = replace(COMMIT, recorded=recorded, progress=progress)
    after = replace(
        head,
        commit_seq=1,
        journal=b"moved",
        lost_leases=0 if progress else 3,
        alone_losses=0 if recorded else 2,
    )
    check_done(runs, runs.commit(commit), after)
    released = runs.commit(replace(COMMIT, commit_seq=1, release=True))
    assert isinstance(released, Done)
    assert (released.head.alone, released.head.lease_token) == (False, None)


def test_closing_a_cancelled_run_clears_the_lane(runs: Runs) -> None:
    put(runs, held(alone=True, status=Status.CANCELLED, format=RUN_FORMAT))
    closed = runs.close(RUN, TOKEN, 0, b"closed")
    assert isinstance(closed, Done)
    assert not closed.head.alone
