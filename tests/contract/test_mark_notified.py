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
def test_a_paid_debt_leaves_nothing_to_wake(runs: Runs, status: Status) -> None:
    head = put(runs, a_head(status=status, parent="parent", notify_pending=True, inbox=inbox([1])))
    check_done(runs, runs.mark_notified(RUN), replace(head, notify_pending=False, wake_at=None))
    assert runs.due(UNTIL, None, 10) == ([], None)


def test_a_paid_debt_of_a_run_in_flight_is_woken_when_its_lease_is_over(runs: Runs) -> None:
    head = put(
        runs, held(status=Status.CANCELLED, parent="parent", notify_pending=True, wake_at=NOW)
    )
    check_done(runs, runs.mark_notified(RUN), replace(head, notify_pending=False, wake_at=UNTIL))
    assert list(pages(runs, UNTIL - 1)) == []
    assert [due.subject.id for due in pages(runs, UNTIL)] == [RUN]


def test_a_debt_is_paid_once(runs: Runs) -> None:
    put(runs, a_head(status=Status.FAILED, parent="parent", notify_pending=True))
    runs.mark_notified(RUN)
    check_refused(runs, lambda: runs.mark_notified(RUN))


@pytest.mark.parametrize("status", [*Status])
def test_a_run_that_owes_nothing_cannot_pay(runs: Runs, status: Status) -> None:
    put(runs, a_head(status=status, parent="parent", depth=1))
    check_refused(runs, lambda: runs.mark_notified(RUN))


def test_a_run_that_does_not_exist_owes_nothing(runs: Runs) -> None:
    assert runs.mark_notified(RUN) == Refused(None)
