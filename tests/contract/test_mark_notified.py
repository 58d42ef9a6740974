"""A run that has ended keeps that its parent is to be notified until that is done."""

from dataclasses import replace

import pytest

from stepwell_engine.core.run.status import Status
from stepwell_engine.ports import Refused, Runs
from tests.contract.heads import (
    ENDED_STATUSES,
    NOW,
    RUN,
    UNTIL,
    a_head,
    check_done,
    check_refused,
    held,
    inbox,
    pages,
    put,
)


@pytest.mark.parametrize("status", ENDED_STATUSES)
def test_a_run_that_has_notified_leaves_nothing_to_wake(runs: Runs, status: Status) -> None:
    head = put(runs, a_head(status=status, parent="parent", notify_pending=True, inbox=inbox([1])))
    check_done(runs, runs.mark_notified(RUN), replace(head, notify_pending=False, wake_at=None))
    assert runs.due(UNTIL, None, 10) == ([], None)


def test_a_run_in_flight_that_has_notified_is_woken_when_its_lease_is_over(runs: Runs) -> None:
    head = put(
        runs, held(status=Status.CANCELLED, parent="parent", notify_pending=True, wake_at=NOW)
    )
    check_done(runs, runs.mark_notified(RUN), replace(head, notify_pending=False, wake_at=UNTIL))
    assert list(pages(runs, UNTIL - 1)) == []
    assert [due.subject.id for due in pages(runs, UNTIL)] == [RUN]


def test_a_run_notifies_once(runs: Runs) -> None:
    put(runs, a_head(status=Status.FAILED, parent="parent", notify_pending=True))
    runs.mark_notified(RUN)
    check_refused(runs, lambda: runs.mark_notified(RUN))


@pytest.mark.parametrize("status", [*Status])
def test_a_run_that_has_nobody_to_notify_is_refused(runs: Runs, status: Status) -> None:
    put(runs, a_head(status=status, parent="parent", depth=1))
    check_refused(runs, lambda: runs.mark_notified(RUN))


def test_a_run_that_does_not_exist_has_nobody_to_notify(runs: Runs) -> None:
    assert runs.mark_notified(RUN) == Refused(None)
