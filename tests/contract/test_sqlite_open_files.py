"""Whatever comes of opening the SQLite file, or of a read: once it is closed, nothing is open.

The errors are kept while it is looked: with them go the last references to a connection, which
would then be closed sooner or later by itself.
"""

import gc
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stepwell_engine.adapters.sqlite import database as module
from stepwell_engine.adapters.sqlite.database import Database
from stepwell_engine.adapters.sqlite.schema import VERSION
from stepwell_engine.errors import StoreError
from tests.contract.heads import RUN, a_head, put
from tests.contract.homes import SqliteHome
from tests.open_files import open_in

# Holds a file locked until its standard input ends.
KEEP = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA locking_mode = EXCLUSIVE")
connection.execute("CREATE TABLE kept (n INTEGER)")
print("kept", flush=True)
sys.stdin.read()
"""


@contextmanager
def connected(path: Path) -> Iterator[sqlite3.Connection]:
    """Somebody else's connection."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def no_database(path: Path) -> None:
    path.write_bytes(b"garbage\n" * 1_000)


def damaged_start(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\x00" + b"?" * 90)


def damaged_schema(path: Path) -> None:
    Database(path).close()
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xff" * 3_996 + content[4_096:])


def of_a_newer_version(path: Path) -> None:
    Database(path).close()
    with connected(path) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")


def of_another_program(path: Path) -> None:
    with connected(path) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")


def a_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    "make",
    [no_database, damaged_start, damaged_schema, of_a_newer_version, of_another_program, a_folder],
)
def test_a_file_that_is_refused_is_closed(path: Path, make: Callable[[Path], None]) -> None:
    make(path)
    with pytest.raises(StoreError) as refused:
        Database(path)
    assert open_in(path.parent) == [], refused.value


def test_a_file_without_tables_that_is_refused_is_closed(path: Path) -> None:
    path.touch()
    with pytest.raises(StoreError) as refused:
        Database(path, create=False)
    assert open_in(path.parent) == [], refused.value


def test_a_file_that_another_process_keeps_for_itself_is_closed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.01)
    # A real one: SQLite keeps a file open as long as the same process has a lock on it elsewhere.
    command = [sys.executable, "-c", KEEP, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"kept\n"
        with pytest.raises(StoreError, match="locked") as refused:
            Database(path)
        assert open_in(path.parent) == [], refused.value


def test_a_reader_that_cannot_connect_is_closed(path: Path) -> None:
    home = SqliteHome(path)
    put(home.runs, a_head())
    path.with_name("stepwell.db-wal").write_bytes(b"")
    damaged_start(path)
    with pytest.raises(StoreError) as refused:
        home.runs.get(RUN)
    home.close()
    assert open_in(path.parent) == [], refused.value


def test_readers_of_threads_that_ended_are_closed(path: Path) -> None:
    home = SqliteHome(path)
    meet = threading.Barrier(3)

    def read(connection: sqlite3.Connection) -> None:
        meet.wait()  # each has a connection of its own
        connection.execute("SELECT count(*) FROM heads").fetchone()

    threads = [threading.Thread(target=home.database.read, args=[read]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert open_in(path.parent).count(path.name) == 1 + 3
    home.close()
    assert open_in(path.parent) == []


def test_a_read_that_fails_after_the_close_is_closed(path: Path) -> None:
    home = SqliteHome(path)

    def query(connection: sqlite3.Connection) -> None:
        home.close()
        connection.execute("SELECT * FROM nowhere")

    with pytest.raises(StoreError) as failed:
        home.database.read(query)
    assert open_in(path.parent) == [], failed.value


def test_a_connection_that_nobody_closes_is_told_of(path: Path) -> None:
    def leave_open() -> None:
        sqlite3.connect(path)
        gc.collect()

    with pytest.warns(ResourceWarning, match="unclosed database"):
        leave_open()
