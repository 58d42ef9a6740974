"""A run that has ended goes on in a new generation."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.status import REVIVABLE, Status
from stepwell_engine.limits import CLOCK_MARGIN, RUN_FORMAT
from stepwell_engine.ports import Done, Refused, Revival, Runs, Written
from tests.contract.heads import (
    COMMIT,
    NOW,
    RUN,
    TOKEN,
    UNTIL,
    a_head,
    check_done,
    check_refused,
    held,
    inbox,
    pages,
    put,
)

REVIVAL = Revival(RUN, 0, 3, b"again", NOW)


def failed(**fields: Any) -> Head:
    """A run that has failed."""
    ended: dict[str, Any] = {
        "status": Status.FAILED,
        "ended_at": NOW - 1,
        "commit_seq": 3,
        "wake_at": None,
    }
    return a_head(**{**ended, **fields})


def revived(head: Head, **fields: Any) -> Head:
    """A head after its revival."""
    after = replace(
        head,
        status=Status.PENDING,
        ended_at=None,
        ready_at=0,
        wake_at=NOW,
        journal=b"again",
        commit_seq=4,
        generation=head.generation + 1,
        format=RUN_FORMAT,
    )
    return replace(after, **fields)


@pytest.mark.parametrize("status", sorted(REVIVABLE))
def test_a_failed_or_timed_out_run_goes_on(runs: Runs, status: Status) -> None:
    lost: dict[str, Any] = {
        "lost_leases": 4,
        "alone_losses": 2,
        "inbox": inbox([1]),
        "inbox_seq": 5,
    }
    head = put(runs, failed(status=status, deadline=NOW - 1, **lost))
    after = revived(head, deadline=None, lost_leases=0, alone_losses=0)
    check_done(runs, runs.revive(REVIVAL), after)
    assert [due.subject.id for due in pages(runs, NOW)] == [RUN]
    assert isinstance(runs.claim(RUN, TOKEN, NOW, UNTIL), Done)


def test_it_gets_the_new_deadline(runs: Runs) -> None:
    head = put(runs, failed(deadline=NOW - 1))
    after = revived(head, deadline=NOW + 9)
    check_done(runs, runs.revive(replace(REVIVAL, deadline=NOW + 9)), after)
    check_refused(runs, lambda: runs.claim(RUN, TOKEN, NOW + 9, UNTIL))


def test_a_deadline_that_is_over_wakes_it_at_once(runs: Runs) -> None:
    head = put(runs, failed())
    after = revived(head, deadline=NOW - 9, wake_at=NOW - 9)
    check_done(runs, runs.revive(replace(REVIVAL, deadline=NOW - 9)), after)


def test_its_blobs_are_there(runs: Runs) -> None:
    put(runs, failed())
    runs.revive(replace(REVIVAL, blobs=(Blob("p.new.4", b"page"),)))
    assert runs.blob(RUN, "p.new.4") == b"page"


@pytest.mark.parametrize("status", sorted(set(Status) - REVIVABLE))
def test_no_other_run_is_revived(runs: Runs, status: Status) -> None:
    put(runs, failed(status=status, wake_at=NOW))
    check_refused(runs, lambda: runs.revive(REVIVAL))


@pytest.mark.parametrize("fields", [{"generation": 1}, {"commit_seq": 2}, {"commit_seq": 4}])
def test_what_was_not_seen_so_is_not_revived(runs: Runs, fields: dict[str, Any]) -> None:
    put(runs, failed())
    check_refused(runs, lambda: runs.revive(replace(REVIVAL, **fields)))


def test_a_run_is_revived_once_for_each_generation(runs: Runs) -> None:
    put(runs, failed(generation=1))
    again = replace(REVIVAL, generation=1)
    assert isinstance(runs.revive(again), Done)
    check_refused(runs, lambda: runs.revive(again))


def test_a_run_that_does_not_exist_is_not_revived(runs: Runs) -> None:
    assert runs.revive(REVIVAL) == Refused(None)


def test_a_lease_must_be_over(runs: Runs) -> None:
    head = put(runs, held(status=Status.TIMED_OUT, ended_at=NOW, commit_seq=3, alone=True))
    at = UNTIL + CLOCK_MARGIN
    check_refused(runs, lambda: runs.revive(replace(REVIVAL, now=at)))
    free: dict[str, Any] = {
        "lease_token": None,
        "lease_expires_at": 0,
        "claimed_at": 0,
        "alone": False,
    }
    after = revived(head, wake_at=at + 1, **free)
    check_done(runs, runs.revive(replace(REVIVAL, now=at + 1)), after)
    check_refused(runs, lambda: runs.commit(replace(COMMIT, commit_seq=3)))
    check_refused(runs, lambda: runs.commit(replace(COMMIT, commit_seq=4)))
    check_refused(runs, lambda: runs.close(RUN, TOKEN, 4, b"settled"))


@pytest.mark.parametrize(("pending", "told"), [(True, False), (False, True)])
def test_a_parent_is_told_again_only_if_it_was_not_told(
    runs: Runs, pending: bool, told: bool
) -> None:
    head = put(runs, failed(parent="parent", depth=1, notify_pending=pending, wake_at=NOW))
    after = revived(head, notify_pending=False, told=told)
    check_done(runs, runs.revive(REVIVAL), after)
    check_refused(runs, lambda: runs.mark_notified(RUN, 0))
    check_refused(runs, lambda: runs.mark_notified(RUN, 1))
    cancelled = runs.cancel(RUN, NOW, generation=1)
    assert isinstance(cancelled, Done)
    assert cancelled.head.notify_pending is not told
    assert cancelled.head.wake_at == (None if told else NOW)


def test_what_was_told_stays_told(runs: Runs) -> None:
    head = put(runs, failed(parent="parent", depth=1, told=True, generation=1))
    check_done(runs, runs.revive(replace(REVIVAL, generation=1)), revived(head))


@pytest.mark.parametrize(
    "end",
    [
        lambda runs: runs.time_out(RUN, NOW, 0),
        lambda runs: runs.cancel(RUN, NOW),
    ],
)
@pytest.mark.parametrize("put_head", [a_head, held])
def test_an_end_that_was_told_leaves_nobody_to_notify(
    runs: Runs, put_head: Callable[..., Head], end: Callable[[Runs], Written]
) -> None:
    head = put(runs, put_head(parent="parent", depth=1, told=True))
    ended = end(runs)
    assert isinstance(ended, Done)
    assert not ended.head.notify_pending
    assert ended.head.wake_at == (head.lease_expires_at if head.lease_token else None)


def test_a_notification_of_an_earlier_generation_is_not_marked(runs: Runs) -> None:
    put(runs, failed(parent="parent", depth=1, generation=1, notify_pending=True, wake_at=NOW))
    check_refused(runs, lambda: runs.mark_notified(RUN, 0))
    assert isinstance(runs.mark_notified(RUN, 1), Done)
