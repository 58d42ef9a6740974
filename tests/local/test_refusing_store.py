"""A real store that refuses for longer than a lease, with eight attempts in flight."""

import secrets
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import requests

from tests.local.process import Host, hosting
from tools.loopback import Call, Reply, answering

LEASE: Final = 5  # seconds
LASTS: Final = LEASE + 3.0  # seconds that the store refuses: beyond the lease and its margin
# So short a lease, and so impatient with a lock, that a test can wait for both.
HASTY: Final = (
    f"from stepwell_engine import limits; limits.LEASE = {LEASE * 1000}; "
    "from stepwell_engine.adapters.sqlite import database; database.LOCKED_SECONDS = 0.5; "
    "from tests.local import full_disk; full_disk.install()"
)
OUTPUT: Final = 30_000  # bytes, which are not compressed


class Receiver:
    """Answers requests once its gate is open, and counts them by step."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.gate = threading.Event()
        self.url = ""

    def answer(self, call: Call) -> Reply:
        """Count, wait, and return an output that needs room."""
        self.requests[call.body["step"]] += 1
        assert self.gate.wait(60)
        return Reply(200, f'"{secrets.token_hex(OUTPUT // 2)}"'.encode())


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    with answering(receiver.answer) as receiver.url:
        yield receiver


@contextmanager
def locked(data: Path) -> Iterator[None]:
    """Another process, this one, writes and does not come to an end."""
    with closing(sqlite3.connect(data / "stepwell.db", isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")


@contextmanager
def full(data: Path) -> Iterator[None]:
    """The disk has no room."""
    (data / "full").touch()
    yield
    (data / "full").unlink()


def wait_until(true: Callable[[], object], seconds: float = 20) -> None:
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends
        time.sleep(0.02)


def lost(data: Path) -> list[int]:
    with closing(sqlite3.connect(data / "stepwell.db")) as connection:
        return [row[0] for row in connection.execute("SELECT lost FROM heads")]


@pytest.mark.parametrize(
    ("refusing", "why"), [(locked, "the file is locked by another process"), (full, "disk full")]
)
def test_outcomes_in_hand_outlast_a_store_that_refuses(
    tmp_path: Path,
    receiver: Receiver,
    refusing: Callable[[Path], AbstractContextManager[None]],
    why: str,
) -> None:
    data = tmp_path / "data"
    steps = [step(f"step-{number}") for number in range(8)]
    fan = {"key": "fan", "kind": "fanout", "children": steps}
    with hosting(data, before=HASTY) as host:
        host.ok("PUT", "/functions/call", {"url": receiver.url})
        run_id = host.start("w", fan, {"key": "join", "kind": "join"})
        wait_until(lambda: receiver.requests.total() == 8)
        told = f"the store refuses: {why}"
        with refusing(data):
            receiver.gate.set()
            ends = time.monotonic() + LASTS
            wait_until(lambda: host.ok("GET", f"/workflows/w/runs/{run_id}")["reason"] == told)
            assert health(host) == {"status": "degraded", "reason": told}
            time.sleep(max(0, ends - time.monotonic()))
            run = host.ok("GET", f"/workflows/w/runs/{run_id}")
            assert (run["finished_at"], run["reason"]) == (None, told)
            assert health(host) == {"status": "degraded", "reason": told}
        run = host.finish("w", run_id)
        assert (run["status"], run["last_error"], run["reason"]) == ("succeeded", None, None)
        assert health(host) == {"status": "ok"}
    assert receiver.requests == {f"step-{number}": 1 for number in range(8)}
    assert {row["attempt"] for row in run["steps"] if row["kind"] == "function"} == {1}
    assert lost(data) == [0]


def step(key: str) -> dict[str, Any]:
    return {"key": key, "kind": "function", "target": "call", "timeout_seconds": 2}


def health(host: Host) -> object:
    return requests.get(f"{host.credentials.url}/v1/health", timeout=20).json()
