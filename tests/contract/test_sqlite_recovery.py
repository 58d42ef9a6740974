"""After a crash of the embedded host nobody holds a lease any more."""

from dataclasses import replace

import pytest

from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.status import Status
from stepwell_engine.limits import RUN_FORMAT as FORMAT
from stepwell_engine.ports import Done
from tests.contract.heads import (
    ENDED_STATUSES,
    LIVE_STATUSES,
    NOW,
    OTHER,
    RUN,
    UNTIL,
    a_head,
    held,
    put,
)
from tests.contract.homes import SqliteHome


def check_recovered(home: SqliteHome, before: Head, after: Head) -> None:
    put(home.runs, before)
    assert home.runs.recover(NOW) == int(before != after)
    assert home.runs.get(RUN) == after


@pytest.mark.parametrize("status", [*LIVE_STATUSES, Status.CANCELLED])
def test_a_lease_ends_and_the_run_is_woken(sqlite_home: SqliteHome, status: Status) -> None:
    head = held(status=status, ready_at=NOW + 9, lost_leases=1)
    check_recovered(sqlite_home, head, replace(head, lease_expires_at=0, wake_at=NOW))


def test_a_recovered_run_can_be_claimed_at_once_and_counts_as_lost(
    sqlite_home: SqliteHome,
) -> None:
    put(sqlite_home.runs, held())
    assert sqlite_home.runs.recover(NOW) == 1
    written = sqlite_home.runs.claim(RUN, OTHER, NOW, UNTIL)
    assert written == Done(
        held(lease_token=OTHER, lease_expires_at=UNTIL, wake_at=NOW, lost_leases=1)
    )


@pytest.mark.parametrize("status", LIVE_STATUSES)
def test_a_ready_run_whose_hint_was_lost_is_woken(sqlite_home: SqliteHome, status: Status) -> None:
    head = a_head(status=status, ready_at=NOW, wake_at=NOW + 30_000)
    check_recovered(sqlite_home, head, replace(head, wake_at=NOW))


def test_a_run_that_is_overdue_stays_so(sqlite_home: SqliteHome) -> None:
    head = a_head(ready_at=NOW - 9, wake_at=NOW - 9)
    check_recovered(sqlite_home, head, head)


def test_a_parked_run_sleeps_on(sqlite_home: SqliteHome) -> None:
    head = a_head(ready_at=NOW + 1, wake_at=NOW + 1)
    check_recovered(sqlite_home, head, head)


@pytest.mark.parametrize("status", ENDED_STATUSES)
def test_an_ended_run_stays_as_it_is(sqlite_home: SqliteHome, status: Status) -> None:
    head = a_head(status=status, wake_at=None)
    check_recovered(sqlite_home, head, head)


def test_a_head_of_a_newer_format_is_left_alone(sqlite_home: SqliteHome) -> None:
    put(sqlite_home.runs, held(format=FORMAT + 1))
    put(sqlite_home.runs, a_head("other", wake_at=NOW + 1, format=FORMAT + 1))
    before = [sqlite_home.stored(RUN), sqlite_home.stored("other")]
    assert sqlite_home.runs.recover(NOW) == 0
    assert [sqlite_home.stored(RUN), sqlite_home.stored("other")] == before


def test_all_that_changed_are_counted(sqlite_home: SqliteHome) -> None:
    for number in range(3):
        put(sqlite_home.runs, held(run_id=f"held-{number}"))
        put(sqlite_home.runs, a_head(f"ready-{number}", wake_at=NOW + 1))
        put(sqlite_home.runs, a_head(f"done-{number}", status=Status.SUCCEEDED, wake_at=None))
    assert sqlite_home.runs.recover(NOW) == 6
    assert sqlite_home.runs.recover(NOW) == 3
