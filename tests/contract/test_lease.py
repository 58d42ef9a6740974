"""Claiming a run and extending its lease."""

from dataclasses import replace

import pytest

from stepwell_engine.core.run.status import Status
from stepwell_engine.limits import CLOCK_MARGIN
from stepwell_engine.ports import Done, Refused, Runs, Written
from tests.contract.heads import (
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


def claim(runs: Runs, token: str = TOKEN, now: int = NOW) -> Written:
    return runs.claim(RUN, token, now, now + 60_000)


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
