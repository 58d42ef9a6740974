"""A host from its start to its end, and started again."""

import os
import signal
import socket
import stat
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import requests

from local.credentials import load
from stepwell_engine import limits
from tests.local.process import Host, hosting


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def step(key: str, tmp_path: Path, function: str = "note") -> dict[str, Any]:
    """A step that appends its key to a log, or also waits for the gate."""
    payload = {"log": str(tmp_path / "chores"), "gate": str(tmp_path / "gate")}
    return {"key": key, "kind": "function", "target": function, "payload": payload}


def register(host: Host) -> None:
    for name, function in (("note", "note"), ("wait", "note_and_wait")):
        host.ok("PUT", f"/functions/{name}", {"python": f"chores:{function}"})


def chores(tmp_path: Path) -> list[str]:
    path = tmp_path / "chores"
    return path.read_text().split() if path.exists() else []


def wait_for_chores(tmp_path: Path, expected: list[str]) -> None:
    while chores(tmp_path) != expected:
        time.sleep(0.005)


def asleep(host: Host, nap: dict[str, Any]) -> str:
    """A run that sleeps; its id."""
    run_id = host.start("drip", nap)
    while host.ok("GET", "/workflows/drip/runs")["items"][0]["status"] != "sleeping":
        time.sleep(0.005)
    return run_id


def test_a_host_that_was_stopped_starts_again_as_it_was(data: Path, tmp_path: Path) -> None:
    with hosting(data) as host:
        first = host.credentials
        path = data / "credentials.json"
        assert load(path) == first
        assert first.project == "demo"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert {stat.S_IMODE(file.stat().st_mode) for file in data.iterdir()} == {0o600}
        assert host.ok("GET", "/database")["embedded"] is True
        register(host)
        run_id = host.start("chores", step("a", tmp_path), step("b", tmp_path))
        before = host.finish("chores", run_id)
        assert before["status"] == "succeeded"
        assert before["output"] == {"noted": "b"}
        assert host.end() == 0

    with hosting(data) as host:
        again = host.credentials
        assert (again.project, again.token) == (first.project, first.token)
        assert load(path) == again
        assert host.finish("chores", run_id) == before
        run_id = host.ok("POST", "/workflows/chores/runs", {})["id"]
        assert host.finish("chores", run_id)["status"] == "succeeded"
        assert host.end() == 0
    assert chores(tmp_path) == ["a", "b", "a", "b"]
    assert not (data / "stepwell.db-wal").exists()
    assert first.token not in host.said()


def test_a_run_in_a_host_that_is_killed_goes_on_at_once_and_repeats_nothing_recorded(
    data: Path, tmp_path: Path
) -> None:
    with hosting(data) as host:
        register(host)
        steps = [step("a", tmp_path), step("b", tmp_path, "wait"), step("c", tmp_path)]
        run_id = host.start("chores", *steps)
        wait_for_chores(tmp_path, ["a", "b"])
        assert host.end(signal.SIGKILL) == -signal.SIGKILL
    (tmp_path / "gate").touch()
    with hosting(data) as host:
        run = host.finish("chores", run_id)
        assert run["status"] == "succeeded"
        assert [one["attempt"] for one in run["steps"]] == [1, 1, 1]
        assert host.end() == 0
    assert chores(tmp_path) == ["a", "b", "b", "c"]


def test_a_run_that_waits_for_its_time_wakes_in_the_next_host(data: Path, tmp_path: Path) -> None:
    nap = {"key": "nap", "kind": "sleep", "sleep_for": "2s"}
    with hosting(data) as host:
        register(host)
        run_id = host.start("chores", step("a", tmp_path), nap, step("b", tmp_path))
        wait_for_chores(tmp_path, ["a"])
        assert host.end() == 0
    with hosting(data) as host:
        assert host.finish("chores", run_id)["status"] == "succeeded"
    assert chores(tmp_path) == ["a", "b"]


def test_a_step_in_flight_may_finish_before_the_host_stops(data: Path, tmp_path: Path) -> None:
    with hosting(data, "--stop-seconds", "60") as host:
        register(host)
        run_id = host.start("chores", step("a", tmp_path, "wait"))
        wait_for_chores(tmp_path, ["a"])
        host.process.send_signal(signal.SIGTERM)
        host.wait_until_said("stopping")
        (tmp_path / "gate").touch()
        assert host.process.wait() == 0
    with hosting(data) as host:
        assert host.finish("chores", run_id)["status"] == "succeeded"
    assert chores(tmp_path) == ["a"]


def test_a_step_that_takes_too_long_is_abandoned_and_runs_again(data: Path, tmp_path: Path) -> None:
    with hosting(data, "--stop-seconds", "0") as host:
        register(host)
        run_id = host.start("chores", step("a", tmp_path, "wait"))
        wait_for_chores(tmp_path, ["a"])
        assert host.end() == 0
        assert "step in flight, which starts anew with the next host: 1" in host.said()
    (tmp_path / "gate").touch()
    with hosting(data) as host:
        run = host.finish("chores", run_id)
        assert (run["status"], run["steps"][0]["attempt"]) == ("succeeded", 1)
    assert chores(tmp_path) == ["a", "a"]


@pytest.mark.parametrize("again", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_stops_the_host_at_once(
    data: Path, tmp_path: Path, again: signal.Signals
) -> None:
    with hosting(data, "--stop-seconds", "600") as host:
        register(host)
        host.start("chores", step("a", tmp_path, "wait"))
        wait_for_chores(tmp_path, ["a"])
        host.process.send_signal(signal.SIGINT)
        host.wait_until_said("stopping")
        assert host.end(again) == 0


def test_a_token_that_does_not_work_any_more_is_replaced(data: Path) -> None:
    with hosting(data) as host:
        first = host.credentials
    path = data / "credentials.json"
    for text in ("{", path.read_text().replace(first.token, "swt_unknown")):
        path.write_text(text)
        with hosting(data) as host:
            assert host.credentials.token not in (first.token, "swt_unknown")
            assert host.ok("GET", "/workflows")["items"] == []
            assert load(path) == host.credentials


def test_what_http_itself_needs_works(data: Path) -> None:
    with hosting(data) as host:
        large = host.request("PUT", "/workflows/a", "x" * limits.MAX_BODY)
        assert (large.status_code, large.json()["code"]) == (413, "payload_too_large")
        assert large.headers["content-type"] == "application/problem+json"
        assert host.request("GET", "/nothing").json()["code"] == "not_found"
        assert host.request("DELETE", "/workflows").status_code == 405
        assert host.request("HEAD", "/workflows").content == b""
        openapi = requests.get(f"{host.credentials.url}/v1/openapi.json", timeout=60)
        assert openapi.json()["openapi"].startswith("3.")
        host.ok("PUT", "/queues/emails", {})
        assert host.request("DELETE", "/queues/emails").status_code == 204


def test_a_client_that_is_slow_or_says_nonsense_harms_nobody(data: Path) -> None:
    with hosting(data, "--request-threads", "1") as host:
        port = int(host.credentials.url.rpartition(":")[2])
        slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
        for one in slow:
            one.sendall(b"PUT /v1/projects/demo/workflows/a HTTP/1.1\r\nhost: a\r\n")
            one.sendall(b"content-length: 100\r\n\r\n{")
        broken = socket.create_connection(("127.0.0.1", port))
        broken.sendall(b"\x00\x01\x02 nonsense\r\n\r\n")
        assert broken.recv(100).startswith(b"HTTP/1.1 400")
        assert host.request("GET", "/workflows").status_code == 200
        for one in (*slow, broken):
            one.close()
        assert host.end() == 0
    assert "Traceback" not in host.said()


def test_a_request_that_waits_does_not_hold_up_the_end(data: Path, tmp_path: Path) -> None:
    nap = {"key": "nap", "kind": "sleep", "sleep_for": "1h"}
    with hosting(data, "--log-level", "DEBUG") as host, ThreadPoolExecutor() as threads:
        run_id = asleep(host, nap)
        waiting = threads.submit(host.request, "GET", f"/workflows/drip/runs/{run_id}?wait=25")
        host.wait_until_said(f"GET /v1/projects/demo/workflows/drip/runs/{run_id}")
        assert host.end() == 0
        answer = waiting.result()
        assert (answer.status_code, answer.json()["status"]) == (200, "sleeping")
    assert "ERROR" not in host.said()


def test_requests_that_wait_leave_threads_for_others(data: Path) -> None:
    nap = {"key": "nap", "kind": "sleep", "sleep_for": "1h"}
    with hosting(data, "--request-threads", "2") as host, ThreadPoolExecutor(20) as threads:
        run_id = asleep(host, nap)
        path = f"/workflows/drip/runs/{run_id}?wait=25"
        waiting = [threads.submit(host.request, "GET", path) for _ in range(20)]
        answered = [one.result().json()["status"] for one in islice(as_completed(waiting), 19)]
        assert answered == ["sleeping"] * 19
        assert host.ok("POST", "/workflows/drip/runs", {})["id"] != run_id
        assert host.ok("POST", f"/workflows/drip/runs/{run_id}/cancel")["status"] == "cancelled"
        (last,) = [one for one in as_completed(waiting) if one.result().json()["finished_at"]]
        assert last.result().json()["status"] == "cancelled"


def test_a_terminal_that_closes_stops_the_host_cleanly(data: Path) -> None:
    with hosting(data) as host:
        assert host.end(signal.SIGHUP) == 0
    assert "stopping" in host.said()


def test_what_a_function_forks_off_does_not_hold_the_folder_or_the_port(
    data: Path, tmp_path: Path
) -> None:
    with hosting(data) as host:
        host.ok("PUT", "/functions/fork", {"python": "chores:fork"})
        step = {"key": "fork", "kind": "function", "target": "fork"}
        run_id = host.start("fork", step)
        child = host.finish("fork", run_id)["output"]["child"]
        port = host.credentials.url.rpartition(":")[2]
        host.end(signal.SIGKILL)
    try:
        with hosting(data, "--port", port) as host:
            assert host.finish("fork", run_id)["status"] == "succeeded"
    finally:
        os.kill(child, signal.SIGTERM)  # which ends it again


def test_a_child_that_comes_back_from_its_function_ends(data: Path) -> None:
    with hosting(data) as host:
        host.ok("PUT", "/functions/fork", {"python": "chores:fork_and_return"})
        run_id = host.start("fork", {"key": "fork", "kind": "function", "target": "fork"})
        child = host.finish("fork", run_id)["output"]["child"]
        while Path(f"/proc/{child}/fd").exists() and any(Path(f"/proc/{child}/fd").iterdir()):
            time.sleep(0.005)
        assert host.end() == 0


def test_files_that_others_could_read_are_closed_to_them(data: Path) -> None:
    with hosting(data):
        pass
    data.chmod(0o777)
    for name in ("secret.key", "stepwell.db", "credentials.json"):
        (data / name).chmod(0o666)
    with hosting(data) as host:
        assert {stat.S_IMODE(file.stat().st_mode) for file in data.iterdir()} == {0o600}
    for name in ("secret.key", "stepwell.db", "credentials.json"):
        assert f"others could read or write {data / name} (666)" in host.said()
    assert f"others may change what lies in {data}" in host.said()


def test_a_variable_with_a_misspelt_name_is_told(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPWELL_WORKER", "1")
    with hosting(data) as host:
        pass
    assert "STEPWELL_WORKER is no setting: did you mean STEPWELL_WORKERS?" in host.said()


def test_clients_that_never_ask_take_nothing_from_others(
    data: Path,
) -> None:
    """There are more of them than files that the host may open."""
    nap = {"key": "nap", "kind": "sleep", "sleep_for": "1s"}
    with hosting(data, files=200) as host:
        host.ok("PUT", "/queues/q", {})
        run_id = host.start("drip", nap, {"key": "last", "kind": "enqueue", "target": "q"})
        port = int(host.credentials.url.rpartition(":")[2])
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(300)]
        for one in idle:
            with suppress(OSError):  # closed already, for one that came later
                one.sendall(b"GET /v1/health HTTP/1.1\r\nho")
        assert host.finish("drip", run_id)["status"] == "succeeded"
        for one in idle:
            one.close()
        assert host.end() == 0
    assert "ERROR" not in host.said()
