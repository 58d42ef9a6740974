"""The log (WAL) of a database that is always being read is emptied above its limit."""

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from stepwell_engine import limits
from stepwell_engine.adapters.sqlite import database as module
from stepwell_engine.adapters.sqlite.database import Database

LIMIT = limits.MIB
READERS = 4
COUNT = "SELECT count(*) FROM projects"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(limits, "MAX_WAL", LIMIT)
    monkeypatch.setattr(module, "LOOK_EVERY", 10)
    return tmp_path / "stepwell.db"


def write(database: Database, number: int) -> None:
    """Some 28 KiB of log."""
    row = (f"p{number}", "x" * 20_000)
    database.write(lambda c: c.execute("INSERT INTO projects VALUES (?, ?, 0)", row))


def log_size(path: Path) -> int:
    return path.with_name(f"{path.name}-wal").stat().st_size


@contextmanager
def always_read(database: Database) -> Iterator[list[int]]:
    """Threads that read, each until another has begun or none may; what they have counted."""
    changed = threading.Condition()
    counted: list[int] = []
    stop = threading.Event()

    def query(connection: sqlite3.Connection) -> None:
        (found,) = connection.execute(COUNT).fetchone()
        with changed:
            counted.append(found)
            begun = len(counted)
            changed.notify_all()
            # When reads that begin have to wait, there is no other.
            changed.wait_for(lambda: len(counted) > begun or stop.is_set(), timeout=0.05)

    def read() -> None:
        while not stop.is_set():
            database.read(query)

    with ThreadPoolExecutor(READERS) as pool:
        readers = [pool.submit(read) for _ in range(READERS)]
        try:
            yield counted
        finally:
            stop.set()
            with changed:
                changed.notify_all()
    for reader in readers:
        reader.result()


def test_it_is_emptied_while_threads_read_and_nothing_is_lost(path: Path) -> None:
    with closing(Database(path)) as database:
        with always_read(database) as counted:
            largest = 0
            for number in range(400):
                write(database, number)
                largest = max(largest, log_size(path))
        # It was looked at every ten writes; without a limit it would be eleven MiB.
        assert LIMIT < largest < 2 * LIMIT
        assert log_size(path) < 2 * LIMIT
        assert database.row(COUNT, ()) == (400,)
        assert counted[-1] > 0


def test_a_read_that_does_not_end_is_waited_for_only_so_long(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHECKPOINT_SECONDS", 0.1)
    begun, go = threading.Event(), threading.Event()

    def query(connection: sqlite3.Connection) -> int:
        connection.execute(COUNT).fetchone()
        begun.set()
        go.wait()
        found: int = connection.execute(COUNT).fetchone()[0]
        return found

    with closing(Database(path)) as database, ThreadPoolExecutor(1) as pool:
        write(database, 0)
        long = pool.submit(database.read, query)
        begun.wait()
        try:
            for number in range(1, 100):
                write(database, number)
                assert database.row(COUNT, ()) == (number + 1,)
            assert log_size(path) > 2 * LIMIT
        finally:
            go.set()
        assert long.result() == 1  # its snapshot
        for number in range(100, 200):
            write(database, number)
        assert log_size(path) < 2 * LIMIT
        assert database.row(COUNT, ()) == (200,)
