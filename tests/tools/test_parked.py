"""Property 14: the work on a run and of a tick does not grow with the number of parked runs."""

from pathlib import Path

import pytest

from tools.bench.parked import Work, compare, work

PARKED = 5_000
LABELS = ["advance", "signal", "tick"]


def test_five_thousand_parked_runs_change_neither_steps_nor_plans(tmp_path: Path) -> None:
    found = compare(tmp_path, PARKED)

    assert {label: found[f"parked_{label}"] for label in LABELS} == pytest.approx(
        dict.fromkeys(LABELS, 1), abs=0.1
    )
    assert found["parked_plans_changed"] == 0


def test_no_statement_reads_a_whole_table(tmp_path: Path) -> None:
    found = work(tmp_path / "stepwell.db", 10)

    assert set(found.steps) == set(LABELS)
    written = {sql.split()[0] for sql in found.plans}
    assert written == {"SELECT", "INSERT", "UPDATE", "DELETE"}
    assert [sql for sql, plan in found.plans.items() if "SCAN" in plan] == []


@pytest.mark.parametrize(
    ("harm", "slow"),
    [
        ("DROP INDEX heads_due", "tick"),
        # Every head that changes is then looked for in the whole table.
        ("CREATE TRIGGER greedy AFTER UPDATE OF token ON heads "
         "BEGIN SELECT count(*) FROM heads WHERE owes > 1; END", "advance"),
    ],
)  # fmt: skip
def test_work_that_grows_is_seen(tmp_path: Path, harm: str, slow: str) -> None:
    def harmed(parked: int) -> Work:
        return work(tmp_path / f"{parked}.db", parked, harm)

    few, many = harmed(0), harmed(1_000)

    assert many.steps[slow] > 1.1 * few.steps[slow]
