"""A reader sees which actions are in flight, and when they began."""

from dataclasses import replace

import pytest

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Definition
from stepwell_engine.core.declared.progress import step_rows
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import StepStatus
from tests.core.stored_runs import (
    DEFINITION,
    HELD,
    JOINED,
    NOW,
    WIDE,
    Case,
    backing,
    done,
)
from tests.service.world import START


def starts(definition: Definition, journal: Journal, claimed_at: int = 0) -> list[int | None]:
    """When what is running began, in definition order."""
    head = replace(HELD, claimed_at=claimed_at)
    rows = step_rows(Case(head, journal, "", definition=definition).progress)
    return [row.record.started_at for row in rows if row.record.status is StepStatus.RUNNING]


@pytest.mark.parametrize("claimed_at", [START - 1, START + 1_000])
def test_a_first_attempt_began_when_a_worker_came_or_the_step_before_ended(claimed_at: int) -> None:
    journal = Journal(4, records=(*JOINED, done("ship")))
    assert starts(DEFINITION, journal, claimed_at) == [max(START + 5, claimed_at)]
    again = replace(journal, open=(backing("tell", NOW),))
    assert starts(DEFINITION, again, claimed_at) == [START]


def test_children_in_flight_began_when_an_outcome_made_room_for_them() -> None:
    joining = Record("join", StepStatus.WAITING, 1, START)
    records = (
        done("fan"),
        *(replace(done(f"c{n}"), finished_at=START + 100 * n) for n in (5, 2, 3)),
    )
    journal = Journal(1, records=records, open=(joining,), children_done=0b10110)
    first = [START + 5] * 5
    assert starts(WIDE, journal) == [*first, START + 200, START + 300, START + 500]
    later = START + 250  # the worker, whose predecessor had recorded the first outcome
    assert starts(WIDE, journal, later) == [later] * 6 + [START + 300, START + 500]


def test_a_slow_child_began_first_however_many_ended_before_it() -> None:
    joining = Record("join", StepStatus.WAITING, 1, START)
    ended = [replace(done(f"c{n}"), finished_at=START + 100 * n) for n in range(2, 12)]
    journal = Journal(
        1, records=(done("fan"), *ended), open=(joining,), children_done=0b11111111110
    )
    assert starts(WIDE, journal) == [START + 5, START + 500]


def test_children_beside_one_that_backs_off_show_no_start() -> None:
    joining = Record("join", StepStatus.WAITING, 1, START)
    journal = Journal(1, records=(done("fan"),), open=(joining, backing("c4")))
    assert starts(WIDE, journal) == [None] * 8


def test_what_comes_back_from_a_backoff_stands_behind_what_never_began() -> None:
    joining = Record("join", StepStatus.WAITING, 1, START)
    journal = Journal(1, records=(done("fan"),), open=(joining, backing("c1", NOW)))
    rows = step_rows(Case(HELD, journal, "", definition=WIDE).progress)
    running = [row.key for row in rows if row.record.status is StepStatus.RUNNING]
    assert running == [f"c{ordinal}" for ordinal in range(2, 10)]


def test_a_run_that_lost_its_workers_again_and_again_tries_one_child_at_a_time() -> None:
    journal = Journal(
        1, records=(done("fan"),), open=(Record("join", StepStatus.WAITING, 1, START),)
    )
    head = replace(HELD, lost_leases=limits.SUSPECT_LOST_LEASES)
    rows = step_rows(Case(head, journal, "", definition=WIDE).progress)
    assert [row.key for row in rows if row.record.status is StepStatus.RUNNING] == ["c1"]
