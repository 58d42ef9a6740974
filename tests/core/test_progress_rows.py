"""The row of every step and compensation, in every state that a run can be stored in."""

from dataclasses import replace

import pytest

from stepwell_engine.core.declared.progress import compensation, step_rows
from stepwell_engine.core.declared.reasons import reason
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import StepStatus
from tests.core.stored_runs import CASES, COMPENSATING, JOINED, LIVE, SOON, Case, done, failed
from tests.service.world import START


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_reader_sees(case: Case) -> None:
    rows = list(step_rows(case.progress))
    assert ", ".join(f"{row.key} {row.record.status}" for row in rows) == case.rows
    assert compensation(case.progress) == case.compensation
    assert reason(case.progress) == case.reason


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_times_and_attempts_go_with_the_status(case: Case) -> None:
    for row in step_rows(case.progress):
        record = row.record
        ended = record.status in ("succeeded", "failed", "cancelled")
        assert (record.finished_at is not None) is ended
        if record.status not in ("retrying", "waiting", "pending"):
            assert record.next_at is None
        if record.status == "running":
            before = case.progress.records.get(record.key)
            assert record.attempt == (before.attempt if before else 0) + 1


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_children_and_their_compensations_name_their_fanout(case: Case) -> None:
    for row in step_rows(case.progress):
        key = row.key.removeprefix("compensate:")
        child = key in {"mail", "crm", "index"} or key[1:].isdigit()
        assert row.parent == ("fan" if child else None)
        assert row.compensating is row.key.startswith("compensate:")


def test_what_never_started_was_cancelled_when_its_sibling_failed_the_join() -> None:
    rows = {row.key: row for row in step_rows(CASES["compensated"].progress)}
    assert rows["index"].record.finished_at == START + 7
    journal = replace(
        COMPENSATING,
        records=(done("pay"), done("fan"), failed("crm"), failed("join")),
        children_done=0,
        compensating=0,
    )
    rows = {row.key: row for row in step_rows(Case(LIVE, journal, "").progress)}
    assert (rows["index"].record.status, rows["index"].record.finished_at) == (
        "cancelled",
        START + 7,
    )


@pytest.mark.parametrize(
    ("status", "shown"), [("pending", None), ("waiting", "r"), ("retrying", "r"), ("failed", "r")]
)
def test_a_child_run_is_named_once_it_exists(status: str, shown: str | None) -> None:
    record = Record("ship", StepStatus(status), 1, START, next_at=SOON, child="r")
    journal = Journal(3, records=JOINED, open=(record,))
    rows = {row.key: row for row in step_rows(Case(LIVE, journal, "").progress)}
    assert rows["ship"].child == shown
