"""What SQLite does for a run does not grow with the signals that are pending beside its head."""

from dataclasses import replace
from pathlib import Path

from stepwell_engine.adapters.sqlite.runs import SqliteRuns
from tests.contract.heads import COMMIT, NOW, TOKEN, UNTIL, held, put, some_message
from tools.bench.parked import Watch, WatchedDatabase

PENDING = 300


def test_writes_and_deliveries_do_the_same_work_whatever_is_pending(tmp_path: Path) -> None:
    watch = Watch()
    database = WatchedDatabase(tmp_path / "stepwell.db", watch)
    runs = SqliteRuns(database)
    for run_id, pending in (("few", 1), ("many", PENDING)):
        put(runs, held(run_id=run_id))
        for number in range(pending):
            runs.deliver(run_id, f"m{number}", some_message(), NOW, None, f"key {number}")
        with watch.under(run_id):
            runs.get(run_id)
            runs.extend(run_id, TOKEN, UNTIL, UNTIL)
            runs.commit(replace(COMMIT, run_id=run_id))
            runs.overflow(run_id, 1, 1)
            runs.deliver(run_id, "last", some_message(), NOW, None)
            runs.commit(replace(COMMIT, run_id=run_id, commit_seq=1, taken=(1,)))
    database.close()
    few, many = watch.steps["few"], watch.steps["many"]
    assert 0 < many <= few + 5
