"""Two versions of the engine on one data folder: an upgrade, a rollback, an upgrade; both at once.

The newer version is this very one under the number of a format that it does not have yet: what it
writes that only that format has (here, signals beside the head), this one must leave to it.
"""

import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from stepwell_engine import limits
from tests.local.process import Host, hosting

NEWER: Final = limits.RUN_FORMAT + 1
UPGRADED: Final = f"from stepwell_engine import limits; limits.RUN_FORMAT = {NEWER}"
# What allows one host only on a folder, and takes its predecessor's leases, is taken away.
BESIDE: Final = (
    f"{UPGRADED}; import local.host; from contextlib import nullcontext; "
    "local.host.locked = nullcontext; from stepwell_engine.adapters.sqlite.runs import SqliteRuns; "
    "SqliteRuns.recover = lambda *_: 0"
)
NUMBERS: Final = {"sleeps": 9, "waits": 11, "fans": 8, "calls": 8, "fails": 8, "long": 6}
TWICE: Final = 6  # the waiting runs of which the newer version gets more signals than a head takes


def steps(log: Path) -> dict[str, list[dict[str, Any]]]:
    """The workflows by name; each step that does something leaves a line."""

    act = {"kind": "function", "target": "note", "payload": {"log": str(log)}}

    def noted(key: str, **more: Any) -> dict[str, Any]:
        return {"key": key} | act | more

    nap = {"kind": "sleep", "sleep_for": "1s"}
    wait = {"kind": "wait_for_signal", "signal": "go", "timeout_seconds": 600}
    fan = {"key": "f", "kind": "fanout", "children": [noted(f"c{number}") for number in range(4)]}
    bad = {"key": "z", "kind": "function", "target": "missing", "max_attempts": 1}
    call = {"kind": "subworkflow", "target": "sleeps", "timeout_seconds": 600}
    return {
        "sleeps": [noted("s1"), {"key": "n1", **nap}, noted("s2"), {"key": "n2", **nap}],
        "waits": [{"key": "w1", **wait}, noted("w2"), {"key": "w3", **wait}, noted("w4")],
        "fans": [fan, {"key": "j", "kind": "join"}, {"key": "n", **nap}, noted("f1")],
        "calls": [noted("p1"), {"key": "p2", **call}, noted("p3"), {"key": "p4", **call}],
        "long": [noted(f"l{number}", target="note_slowly") for number in range(4)],
        "fails": [noted("u1", compensate=act), {"key": "n", **nap}, bad],
    }


class Folder:
    """A data folder with 50 runs."""

    def __init__(self, path: Path) -> None:
        self.data, self.log = path / "data", path / "steps"
        self.runs: list[tuple[str, str]] = []

    def begin(self, host: Host) -> None:
        """Start the runs. Those that wait get signals that nobody waits for."""
        for name in ("note", "note_slowly"):
            host.ok("PUT", f"/functions/{name}", {"python": f"chores:{name}"})
        for name, body in steps(self.log).items():
            host.ok("PUT", f"/workflows/{name}", {"steps": body})
            for _ in range(NUMBERS[name]):
                run_id = host.ok("POST", f"/workflows/{name}/runs", {})["id"]
                self.runs.append((name, run_id))
        for run_id in self.waiting:
            for _ in range(3):
                self.signal(host, run_id, "other")

    @property
    def waiting(self) -> list[str]:
        """The runs that wait for signals."""
        return [run_id for name, run_id in self.runs if name == "waits"]

    def signal(self, host: Host, run_id: str, name: str) -> int:
        """Send a signal; the answer's status."""
        path = f"/workflows/waits/runs/{run_id}/signals"
        return host.request("POST", path, {"signal": name}).status_code

    def heads(self) -> list[dict[str, Any]]:
        """What is stored of every run."""
        file = f"file:{self.data / 'stepwell.db'}?mode=ro"
        with closing(sqlite3.connect(file, uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute("SELECT * FROM heads")]

    def check_nobody_is_blamed(self) -> None:
        """After a host has stopped, no lease is left, and nobody counts as lost."""
        assert {(one["token"], one["lost"]) for one in self.heads()} == {(None, 0)}

    def wait_until_over(self, newest: int) -> None:
        """Until all runs of formats up to this one have ended."""
        while any(one["ended_at"] is None for one in self.heads() if one["format"] <= newest):
            time.sleep(0.05)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_an_upgrade_a_rollback_and_an_upgrade_lose_nothing_and_blame_nobody(folder: Folder) -> None:
    with hosting(folder.data) as old:
        folder.begin(old)
    folder.check_nobody_is_blamed()
    with hosting(folder.data, before=UPGRADED) as new:
        for run_id in folder.waiting[:TWICE]:
            assert [folder.signal(new, run_id, "other") for _ in range(3)] == [201] * 3
    folder.check_nobody_is_blamed()
    assert Counter(one["format"] for one in folder.heads())[NEWER] == TWICE
    with hosting(folder.data) as old:
        answers = [folder.signal(old, run_id, "go") for run_id in folder.waiting for _ in range(2)]
        assert answers == [503] * 2 * TWICE + [201] * 2 * (len(folder.waiting) - TWICE)
        folder.wait_until_over(limits.RUN_FORMAT)
    folder.check_nobody_is_blamed()
    with hosting(folder.data, before=UPGRADED) as new:
        for run_id in folder.waiting[:TWICE]:
            assert [folder.signal(new, run_id, "go") for _ in range(2)] == [201] * 2
        folder.wait_until_over(NEWER)
        for name, run_id in folder.runs:
            run = new.ok("GET", f"/workflows/{name}/runs/{run_id}")
            assert (name, run["status"]) == (name, "failed" if name == "fails" else "succeeded")
    folder.check_nobody_is_blamed()
    done = Counter(folder.log.read_text().splitlines())
    children = 2 * NUMBERS["calls"]
    expected = Counter({"s1": children, "s2": children}) + Counter(
        {
            **dict.fromkeys(("s1", "s2"), NUMBERS["sleeps"]),
            **dict.fromkeys(("w2", "w4"), NUMBERS["waits"]),
            **dict.fromkeys(("f1", *(f"c{number}" for number in range(4))), NUMBERS["fans"]),
            **dict.fromkeys(("p1", "p3"), NUMBERS["calls"]),
            **dict.fromkeys((f"l{number}" for number in range(4)), NUMBERS["long"]),
            **dict.fromkeys(("u1", "compensate:u1"), NUMBERS["fails"]),
        }
    )
    assert done == expected


def test_an_older_host_lets_go_of_what_a_newer_one_writes_to_beside_it(folder: Folder) -> None:
    gate, count = folder.data.with_name("gate"), 4
    payload = {"log": str(folder.log), "gate": str(gate)}
    act = {"kind": "function", "payload": payload}
    held = [{"key": "first", "target": "wait", **act}, {"key": "last", "target": "note", **act}]
    with hosting(folder.data) as old, hosting(folder.data, before=BESIDE) as new:
        old.ok("PUT", "/functions/wait", {"python": "chores:note_and_wait"})
        old.ok("PUT", "/functions/note", {"python": "chores:note"})
        runs = [old.start("held", *held) for _ in range(count)]
        while not folder.log.exists() or len(folder.log.read_text().split()) < count:
            time.sleep(0.02)
        for run_id in runs:
            signal = {"signal": "news", "payload": None, "idempotency_key": "one"}
            new.ok("POST", f"/workflows/held/runs/{run_id}/signals", signal)
        assert {one["format"] for one in folder.heads()} == {NEWER}
        gate.touch()
        for run_id in runs:
            assert new.finish("held", run_id)["status"] == "succeeded"
        log = old.said()
    folder.check_nobody_is_blamed()
    assert Counter(folder.log.read_text().split()) == {"first": count, "last": count}
    assert log.count(f"was written in format {NEWER}") == count
