"""Cancelling a run, and settling a cancelled one whose worker is gone."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.status import STOPPED, Status
from stepwell_engine.ports import Done, Refused, Runs
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
    pages,
    put,
)

CANCELLED: dict[str, Any] = {"status": Status.CANCELLED, "ended_at": NOW}


@pytest.mark.parametrize("status", LIVE_STATUSES)
def test_cancel_of_a_run_nobody_holds_leaves_nothing_to_wake(runs: Runs, status: Status) -> None:
    head = put(runs, a_head(status=status, inbox=inbox([1])))
    after = replace(head, **CANCELLED, inbox_seq=1, wake_at=None)
    check_done(runs, runs.cancel(RUN, NOW), after)
    assert runs.due(UNTIL, None, 10) == ([], None)


@pytest.mark.parametrize("status", LIVE_STATUSES)
def test_cancel_keeps_the_lease_and_its_wake_at(runs: Runs, status: Status) -> None:
    head = put(runs, held(status=status, commit_seq=2, inbox_seq=3))
    check_done(runs, runs.cancel(RUN, NOW), replace(head, **CANCELLED, inbox_seq=4))


@pytest.mark.parametrize("status", LIVE_STATUSES)
def test_cancel_of_a_child_makes_it_notify_at_once(runs: Runs, status: Status) -> None:
    head = put(runs, a_head(status=status, wake_at=UNTIL, parent="parent", depth=1))
    after = replace(head, **CANCELLED, inbox_seq=1, notify_pending=True, wake_at=NOW)
    check_done(runs, runs.cancel(RUN, NOW), after)
    assert [due.subject.id for due in pages(runs, NOW)] == [RUN]


def test_cancel_of_a_child_in_flight_keeps_its_lease_and_makes_it_notify(runs: Runs) -> None:
    head = put(runs, held(parent="parent", depth=1))
    after = replace(head, **CANCELLED, inbox_seq=1, notify_pending=True, wake_at=NOW)
    check_done(runs, runs.cancel(RUN, NOW), after)


@pytest.mark.parametrize("parent", [None, "parent"])
@pytest.mark.parametrize("put_head", [a_head, held])
def test_a_cancel_that_cascades_has_the_children_to_notify(
    runs: Runs, put_head: Callable[..., Head], parent: str | None
) -> None:
    head = put(runs, put_head(parent=parent, wake_at=UNTIL))
    after = replace(head, **CANCELLED, inbox_seq=1, notify_pending=True, cascade=True, wake_at=NOW)
    check_done(runs, runs.cancel(RUN, NOW, cascade=True), after)
    assert [due.subject.id for due in pages(runs, NOW)] == [RUN]
    mark_notified = replace(
        after, notify_pending=False, wake_at=head.lease_expires_at if head.lease_token else None
    )
    check_done(runs, runs.mark_notified(RUN), mark_notified)


@pytest.mark.parametrize("status", ENDED_STATUSES)
def test_an_ended_run_refuses_a_cancel(runs: Runs, status: Status) -> None:
    put(runs, held(status=status, ended_at=NOW - 1))
    check_refused(runs, lambda: runs.cancel(RUN, NOW))
    check_refused(runs, lambda: runs.cancel(RUN, NOW, cascade=True))


def test_a_run_that_does_not_exist_refuses_a_cancel(runs: Runs) -> None:
    assert runs.cancel(RUN, NOW) == Refused(None)
    assert runs.cancel(RUN, NOW, cascade=True) == Refused(None)


def test_a_commit_of_a_worker_that_did_not_see_the_cancel_is_refused(runs: Runs) -> None:
    put(runs, held())
    runs.cancel(RUN, NOW)
    check_refused(runs, lambda: runs.commit(COMMIT))
    assert isinstance(runs.commit(replace(COMMIT, expect="stopped")), Done)


def test_close_settles_a_cancelled_run(runs: Runs) -> None:
    head = put(runs, held(**CANCELLED, commit_seq=2, lost_leases=1))
    written = runs.close(RUN, TOKEN, 2, b"settled")
    after = replace(
        head,
        journal=b"settled",
        commit_seq=3,
        lease_token=None,
        lease_expires_at=0,
        claimed_at=0,
        wake_at=None,
    )
    check_done(runs, written, after)
    check_refused(runs, lambda: runs.close(RUN, TOKEN, 2, b"settled"))


def test_close_of_a_run_that_has_to_notify_leaves_it_to_be_woken(runs: Runs) -> None:
    head = put(
        runs, held(**CANCELLED, commit_seq=2, parent="parent", notify_pending=True, wake_at=NOW)
    )
    written = runs.close(RUN, TOKEN, 2, b"settled")
    check_done(
        runs,
        written,
        replace(
            head,
            journal=b"settled",
            commit_seq=3,
            lease_token=None,
            lease_expires_at=0,
            claimed_at=0,
        ),
    )


@pytest.mark.parametrize("status", [s for s in Status if s not in STOPPED])
def test_close_of_a_run_that_was_not_stopped_is_refused(runs: Runs, status: Status) -> None:
    put(runs, held(status=status))
    check_refused(runs, lambda: runs.close(RUN, TOKEN, 0, b"settled"))


def test_close_by_another_token_is_refused(runs: Runs) -> None:
    put(runs, held(**CANCELLED))
    check_refused(runs, lambda: runs.close(RUN, OTHER, 0, b"settled"))


def test_close_without_a_lease_is_refused(runs: Runs) -> None:
    put(runs, a_head(**CANCELLED))
    check_refused(runs, lambda: runs.close(RUN, TOKEN, 0, b"settled"))


@pytest.mark.parametrize("number", [1, 3])
def test_close_with_another_number_is_refused(runs: Runs, number: int) -> None:
    put(runs, held(**CANCELLED, commit_seq=2))
    check_refused(runs, lambda: runs.close(RUN, TOKEN, number, b"settled"))


def test_close_of_a_run_that_does_not_exist_is_refused(runs: Runs) -> None:
    assert runs.close(RUN, TOKEN, 0, b"settled") == Refused(None)


def test_after_a_close_the_late_outcome_is_refused(runs: Runs) -> None:
    put(runs, held(**CANCELLED))
    runs.close(RUN, TOKEN, 0, b"settled")
    check_refused(runs, lambda: runs.commit(replace(COMMIT, expect="stopped")))
