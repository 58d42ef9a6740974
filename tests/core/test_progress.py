"""Rows and reasons of runs, from their documents alone."""

from dataclasses import replace
from typing import Any

import pytest

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Definition, Kind, Step
from stepwell_engine.core.declared.progress import Progress, step_rows
from stepwell_engine.core.declared.reasons import reason
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Failure, Journal
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.core.values.times import iso
from stepwell_engine.service.runs.queries import last_error
from tests.service.world import START

CHARGE = Step(0, "charge", Kind.WEBHOOK, "https://a.example", max_attempts=5)
APPROVE = Step(1, "approve", Kind.WAIT_FOR_SIGNAL, signal="approved")
DEFINITION = Definition("demo", "orders", 1, (CHARGE, APPROVE))
HEAD = Head("run", "demo", "orders", 1, START)
DONE = Record("charge", StepStatus.SUCCEEDED, 1, START, START + 5)


def progress(head: Head, journal: Journal, now: int) -> Progress:
    records = {record.key: record for record in (*journal.records, *journal.open)}
    return Progress(DEFINITION, head, journal, records, now)


def rows(head: Head, journal: Journal, now: int = START) -> list[tuple[str, str, int]]:
    shown = step_rows(progress(head, journal, now))
    return [(row.key, row.record.status, row.record.attempt) for row in shown]


def why(head: Head, journal: Journal, now: int = START) -> str | None:
    return reason(progress(head, journal, now))


def held(until: int = START + 60_000, **fields: Any) -> Head:
    return replace(HEAD, lease_token="token", lease_expires_at=until, **fields)


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_007, "2023-11-14T22:13:20.007Z"),
        (1_700_000_000_999, "2023-11-14T22:13:20.999Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_times_are_iso_8601_to_the_millisecond(at: int, shown: str) -> None:
    assert iso(at) == shown


def test_a_wait_says_for_what_and_until_when() -> None:
    waiting = Record("approve", StepStatus.WAITING, 1, START, next_at=START + 1_000)
    journal = Journal(1, records=(DONE,), open=(waiting,))
    head = replace(HEAD, status=Status.WAITING)
    at = "2023-11-14T22:13:21.000Z"
    assert why(head, journal) == f'waiting for the signal "approved", until {at}'
    assert rows(head, journal) == [("charge", "succeeded", 1), ("approve", "waiting", 1)]


def test_a_lease_makes_only_steps_with_a_side_effect_running() -> None:
    assert rows(held(), Journal(1, records=(DONE,)))[1] == ("approve", "pending", 0)
    assert rows(held(), Journal())[0] == ("charge", "running", 1)


def test_a_lease_does_not_make_a_backing_off_step_running() -> None:
    retrying = Record("charge", StepStatus.RETRYING, 1, START, next_at=START + 2_000, error="busy")
    journal = Journal(open=(retrying,))
    assert rows(held(), journal)[0] == ("charge", "retrying", 1)
    assert rows(held(), journal, START + 2_000)[0] == ("charge", "running", 2)
    assert why(HEAD, journal) == (
        "retrying step charge at 2023-11-14T22:13:22.000Z, attempt 2 of 5"
    )
    assert why(HEAD, journal, START + 2_000) == (
        "waiting for a worker to go on at step charge, attempt 2 of 5"
    )


def test_a_lease_is_in_force_until_its_last_millisecond() -> None:
    assert why(held(START + 1), Journal()) == "running step charge, attempt 1 of 5"
    lost = why(held(START), Journal())
    assert lost is not None
    assert lost.startswith("its worker was lost")
    assert rows(held(START), Journal())[0] == ("charge", "pending", 0)


def test_lost_workers_are_reported() -> None:
    assert why(held(lost_leases=1), Journal()) == (
        "running step charge, attempt 1 of 5; its worker was lost once"
    )
    assert why(replace(HEAD, lost_leases=1), Journal()) == (
        "waiting for a worker to go on at step charge, attempt 1 of 5; its worker was lost once"
    )
    assert why(held(lost_leases=1), Journal(1, records=(DONE,))) == (
        "going on at step approve; its worker was lost once"
    )


TURNS = ", so each of its attempts runs alone, one run at a time"


@pytest.mark.parametrize(
    ("journal", "words"),
    [
        (Journal(), "waiting for its turn to go on at step charge, attempt 1 of 5"),
        (Journal(1, records=(DONE,)), "waiting for a worker to go on at step approve"),
        (Journal(2, records=(DONE,)), "waiting for a worker to end it"),
    ],
)
def test_a_suspect_that_waits_for_its_turn_says_that_only_one_goes_on(
    journal: Journal, words: str
) -> None:
    lost = limits.SUSPECT_LOST_LEASES
    losses = f"{words}; its worker was lost {lost} times"
    assert why(replace(HEAD, lost_leases=lost), journal) == losses + TURNS
    before = why(replace(HEAD, lost_leases=lost - 1), journal)
    assert before is not None
    assert TURNS not in before
    # A run whose lease is in force waits for no worker.
    assert TURNS not in (why(held(lost_leases=lost), journal) or "")


def test_a_run_that_becomes_a_suspect_with_this_loss_says_so() -> None:
    takes_over = "another one takes over within a minute or two"
    assert why(held(START), Journal()) == f"its worker was lost: {takes_over}"
    times = limits.SUSPECT_LOST_LEASES
    shown = f"its worker was lost {times} times: {takes_over}"
    assert why(held(START, lost_leases=times - 1), Journal()) == shown + TURNS
    shown = f"its worker was lost {times - 1} times: {takes_over}".replace(" 1 times", "")
    assert why(held(START, lost_leases=times - 2), Journal()) == shown


def test_a_step_that_could_not_be_tried_says_why() -> None:
    deferred = Record(
        "charge", StepStatus.RETRYING, 0, next_at=START + 2_000, error="too many open files"
    )
    journal = Journal(open=(deferred,))
    assert why(HEAD, journal) == "retrying step charge at 2023-11-14T22:13:22.000Z, attempt 1 of 5"
    assert rows(HEAD, journal)[0] == ("charge", "retrying", 0)
    assert last_error(HEAD, journal) == ("too many open files", None)


def test_a_run_behind_its_last_step_is_about_to_end() -> None:
    assert why(held(), Journal(2)) == "ending"
    assert why(HEAD, Journal(2)) == "waiting for a worker to end it"


@pytest.mark.parametrize(
    "status", [Status.SUCCEEDED, Status.FAILED, Status.CANCELLED, Status.TIMED_OUT]
)
def test_a_run_that_ended_has_no_reason(status: Status) -> None:
    assert why(replace(held(), status=status), Journal()) is None


def test_a_step_that_was_backing_off_when_its_run_failed_is_cancelled() -> None:
    retrying = Record("charge", StepStatus.RETRYING, 1, START, next_at=START + 2_000, error="busy")
    ceiling = Failure("too many attempts", "step_ceiling", None)
    journal = Journal(open=(retrying,), failure=ceiling)
    head = replace(HEAD, status=Status.FAILED, ended_at=START + 9)
    (row,) = step_rows(progress(head, journal, START + 9))
    assert (row.record.status, row.record.finished_at, row.record.next_at) == (
        StepStatus.CANCELLED,
        START + 9,
        None,
    )
    assert row.record.error == "busy"
    assert last_error(head, journal) == ("too many attempts", "step_ceiling")


def test_a_cancelled_runs_step_is_running_until_its_lease_is_over() -> None:
    head = held(status=Status.CANCELLED, ended_at=START + 9)
    assert rows(head, Journal())[0] == ("charge", "running", 1)
    assert rows(head, Journal(), START + 60_000) == [("charge", "cancelled", 0)]


def test_the_last_error_of_a_live_run_is_that_of_its_current_step() -> None:
    retrying = Record("charge", StepStatus.RETRYING, 1, START, next_at=START + 2_000, error="busy")
    assert last_error(HEAD, Journal(open=(retrying,))) == ("busy", None)
    later = Record("approve", StepStatus.RETRYING, 1, START, error="gone", code="timeout")
    assert last_error(HEAD, Journal(open=(retrying, later))) == ("gone", "timeout")
    assert last_error(HEAD, Journal()) == (None, None)
    cancelled = replace(HEAD, status=Status.CANCELLED)
    assert last_error(cancelled, Journal(open=(retrying,))) == (None, None)
