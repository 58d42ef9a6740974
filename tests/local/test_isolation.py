"""A step that ends its process, and a host that ends, again and again: who is blamed."""

import signal
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.local.process import Ended, Host, hosting

# Pauses that a test can wait for.
HASTY = (
    "from stepwell_engine import limits; limits.BACKOFF_INITIAL = 100; limits.HOSTS_LOST_PAUSE = 10"
)

# Most of what a start takes is to load the API.
WITHOUT_API = (
    "from types import SimpleNamespace; from local import host; "
    "host._serve = lambda *_: SimpleNamespace(stop=lambda _: None)"
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def register(host: Host) -> None:
    functions = {
        "note": "note",
        "poison": "note_and_kill",
        "tell": "tell_process",
        "wait": "note_and_wait",
    }
    for name, function in functions.items():
        host.ok("PUT", f"/functions/{name}", {"python": f"chores:{function}"})


def step(key: str, tmp_path: Path, function: str) -> dict[str, Any]:
    payload = {"log": str(tmp_path / key), "gate": str(tmp_path / "gate")}
    return {"key": key, "kind": "function", "target": function, "payload": payload}


def lines(path: Path) -> list[str]:
    return path.read_text().split("\n")[:-1] if path.exists() else []


def wait_for_lines(path: Path, count: int) -> None:
    ends = time.monotonic() + 60
    while len(lines(path)) < count:
        assert time.monotonic() < ends, lines(path)
        time.sleep(0.005)


def lost(data: Path) -> list[int]:
    """How many workers each run has lost."""
    with closing(sqlite3.connect(data / "stepwell.db")) as connection:
        return [row[0] for row in connection.execute("SELECT lost FROM heads ORDER BY run_id")]


def wait_until_gone(pid: int) -> None:
    ends = time.monotonic() + 20
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < ends
        time.sleep(0.01)


def end_while(data: Path, log: Path, times: int) -> None:
    """Kill a host once the step that leaves a line in the log has begun, so many times."""
    for _ in range(times):
        begun = len(lines(log))
        with hosting(data, before=f"{HASTY}; {WITHOUT_API}") as host:
            wait_for_lines(log, begun + 1)
            host.end(signal.SIGKILL)


def test_a_poisonous_child_ends_three_hosts_and_then_five_processes_of_its_own(
    data: Path, tmp_path: Path
) -> None:
    with hosting(data, before=HASTY) as host:
        register(host)
        innocent = host.start("innocent", step("long", tmp_path, "wait"))
        wait_for_lines(tmp_path / "long", 1)
        children = [
            step("sibling", tmp_path, "note"),
            step("poison", tmp_path, "poison"),
            step("other", tmp_path, "note"),
        ]
        fan = {"key": "fan", "kind": "fanout", "children": children}
        steps = [fan, {"key": "join", "kind": "join"}]
        host.ok("PUT", "/workflows/fan", {"steps": steps})
        with suppress(OSError):  # it ends before it has answered, perhaps
            host.ok("POST", "/workflows/fan/runs", {"idempotency_key": "guilty"})
        host.process.wait()
    ended = 1
    while ended < 3:
        with suppress(Ended), hosting(data, before=HASTY) as host:  # before it has started
            host.process.wait()
        ended += 1
    with hosting(data, before=HASTY) as host:
        (tmp_path / "gate").touch()
        (guilty,) = host.ok("GET", "/workflows/fan/runs")["items"]
        run = host.finish("fan", guilty["id"])
        assert run["status"] == "failed"
        rows = {row["key"]: row for row in run["steps"]}
        assert (rows["poison"]["status"], rows["poison"]["code"]) == ("failed", "worker_lost")
        assert len(lines(tmp_path / "poison")) == ended + 5
        for sibling in ("sibling", "other"):
            assert rows[sibling]["status"] == "succeeded"
            assert 1 <= len(lines(tmp_path / sibling)) <= ended + 1
        run = host.finish("innocent", innocent)
        assert (run["status"], run["steps"][0]["attempt"]) == ("succeeded", 1)
        assert host.end() == 0


def test_a_step_that_loses_twelve_hosts_goes_on(data: Path, tmp_path: Path) -> None:
    with hosting(data, before=HASTY) as host:
        register(host)
        run_id = host.start("long", step("long", tmp_path, "wait"))
        wait_for_lines(tmp_path / "long", 1)
        host.end(signal.SIGKILL)
    end_while(data, tmp_path / "long", 11)
    (tmp_path / "gate").touch()
    with hosting(data, before=HASTY) as host:
        run = host.finish("long", run_id)
    assert (run["status"], run["steps"][0]["attempt"]) == ("succeeded", 1)


def test_twelve_hosts_that_are_told_to_stop_count_as_lost_to_nobody(
    data: Path, tmp_path: Path
) -> None:
    """Told once, when the time to stop is over, or twice."""
    log = tmp_path / "long"
    for number in range(12):
        twice = number % 2 == 1
        stop = ("--stop-seconds", "600" if twice else "0")
        with hosting(data, *stop, before=WITHOUT_API if number else "") as host:
            if number == 0:
                register(host)
                run_id = host.start("long", step("long", tmp_path, "wait"))
            wait_for_lines(log, number + 1)
            if twice:
                host.process.send_signal(signal.SIGTERM)
                while host.said().count("stopping") <= number:
                    time.sleep(0.005)
            assert host.end() == 0
        assert lost(data) == [0]
    (tmp_path / "gate").touch()
    with hosting(data) as host:
        run = host.finish("long", run_id)
    assert (run["status"], run["steps"][0]["attempt"]) == ("succeeded", 1)
    assert len(lines(log)) == 12 + 1


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGTERM])
def test_the_child_of_a_suspect_ends_with_its_host(
    data: Path, tmp_path: Path, stop: signal.Signals
) -> None:
    log = tmp_path / "long"
    with hosting(data, before=HASTY) as host:
        register(host)
        run_id = host.start("long", step("long", tmp_path, "tell"))
        wait_for_lines(log, 1)
        assert lines(log) == [f"{host.process.pid} 0"]
        host.end(signal.SIGKILL)
    end_while(data, log, 2)
    with hosting(data, "--stop-seconds", "0", before=HASTY) as host:
        wait_for_lines(log, 4)
        child, score = map(int, lines(log)[-1].split())
        assert child != host.process.pid
        assert score == 1_000
        host.end(stop)
        wait_until_gone(child)
        assert lost(data) == [3]
    (tmp_path / "gate").touch()
    with hosting(data, before=HASTY) as host:
        run = host.finish("long", run_id)
    assert (run["status"], run["steps"][0]["attempt"]) == ("succeeded", 1)


def test_a_command_of_a_suspect_ends_with_its_host(data: Path, tmp_path: Path) -> None:
    log = tmp_path / "pids"
    with hosting(data, before=HASTY) as host:
        script = f"cat > /dev/null; echo $$ >> {log}; exec sleep 600"
        host.ok("PUT", "/functions/f", {"command": ["sh", "-c", script]})
        host.start("w", {"key": "a", "kind": "function", "target": "f"})
        wait_for_lines(log, 1)
        host.end(signal.SIGKILL)
    end_while(data, log, 3)
    for line in lines(log):
        wait_until_gone(int(line))
