"""The SQLite file itself: opening, refusing, closing."""

import re
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from stepwell_engine.adapters.sqlite import database as module
from stepwell_engine.adapters.sqlite.database import Database
from stepwell_engine.adapters.sqlite.schema import VERSION
from stepwell_engine.core.run.head import Blob
from stepwell_engine.errors import NewerFormat, NotWritten, StoreError, Unavailable
from stepwell_engine.ports import Done
from tests.arch.sources import python_sources
from tests.contract.heads import NOW, RUN, a_head, put
from tests.contract.homes import SqliteHome

PAGE = 4096  # bytes


def script(path: Path, *statements: str) -> None:
    """Change the file behind Stepwell's back."""
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_what_was_written_is_there_when_the_file_is_opened_again(path: Path) -> None:
    first = SqliteHome(path)
    put(first.runs, a_head())
    first.close()
    second = SqliteHome(path)
    assert second.runs.get(RUN) == a_head()
    second.close()


def test_commits_are_on_disk_before_they_are_acknowledged(sqlite_home: SqliteHome) -> None:
    def pragmas(connection: sqlite3.Connection) -> tuple[str, int]:
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        return mode, connection.execute("PRAGMA synchronous").fetchone()[0]

    full = 2
    assert sqlite_home.database.read(pragmas) == ("wal", full)
    assert pragmas(sqlite_home.database._writer) == ("wal", full)


def test_a_file_of_a_newer_version_is_refused_and_left_as_it_is(path: Path) -> None:
    Database(path).close()
    script(path, f"PRAGMA user_version = {VERSION + 1}")
    before = path.read_bytes()
    with pytest.raises(NewerFormat, match=f"format {VERSION + 1}.*upgrade this installation"):
        Database(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"garbage\n" * 1000, b"x", b"SQLite format 3\x00" + b"?" * 90])
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(
    path: Path, content: bytes
) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"stepwell\.db is not a readable SQLite database"):
        Database(path)
    assert path.read_bytes() == content
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_the_database_of_another_program_is_refused_and_left_as_it_is(path: Path) -> None:
    script(path, "CREATE TABLE songs (title TEXT)")
    with pytest.raises(StoreError, match="tables of another program"):
        Database(path)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("songs",)]
    connection.close()


def test_an_empty_file_becomes_a_database(path: Path) -> None:
    path.touch()
    home = SqliteHome(path)
    put(home.runs, a_head())
    home.close()


def test_parameters_of_statements_have_no_numbers() -> None:
    """Before 3.12.4, Python 3.12 takes `?1` for a name, and warns that a tuple has none."""
    texts = {source.path: source.text for source in python_sources()}
    statements = {name: text for name, text in texts.items() if "sqlite" in name.parts}
    assert any(name.name == "runs.py" for name in statements)
    assert [name for name, text in statements.items() if re.search(r"\?\d", text)] == []


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"missing/stepwell\.db: unable to open"):
        Database(tmp_path / "missing" / "stepwell.db")


def test_a_folder_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="Is a directory"):
        Database(tmp_path)


def test_an_sqlite_that_is_too_old_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with pytest.raises(StoreError, match=r"needs 3\.37\.0 or newer"):
        Database(path)
    assert not path.exists()


def test_damage_inside_the_file_is_a_store_error(path: Path) -> None:
    home = SqliteHome(path)
    for number in range(200):
        put(home.runs, a_head(str(number), journal=b"x" * 500))
    home.close()
    connection = sqlite3.connect(path)
    root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'heads'")
    begins = (root.fetchone()[0] - 1) * PAGE
    connection.close()
    content = path.read_bytes()
    path.write_bytes(content[:begins] + b"\xff" * PAGE + content[begins + PAGE :])
    damaged = SqliteHome(path)
    with pytest.raises(StoreError, match="not a readable SQLite database") as caught:
        damaged.runs.get("7")
    assert isinstance(caught.value.__cause__, sqlite3.DatabaseError)
    with pytest.raises(StoreError, match="not a readable SQLite database"):
        damaged.runs.cancel("7", NOW)
    damaged.close()


def test_close_closes_the_connections_of_all_threads(sqlite_home: SqliteHome, path: Path) -> None:
    start = threading.Barrier(4)

    def read(connection: sqlite3.Connection) -> None:
        connection.execute("SELECT count(*) FROM heads").fetchone()
        start.wait()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: sqlite_home.database.read(read), range(4)))
    sqlite_home.close()
    # SQLite removes the log with the last connection.
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    sqlite_home.close()


def test_a_closed_database_is_unavailable(sqlite_home: SqliteHome) -> None:
    sqlite_home.close()
    with pytest.raises(Unavailable, match="is closed"):
        sqlite_home.runs.get(RUN)
    with pytest.raises(Unavailable, match="is closed"):
        sqlite_home.runs.create(a_head())


def test_a_read_in_progress_ends_before_its_connection_closes(
    sqlite_home: SqliteHome, path: Path
) -> None:
    put(sqlite_home.runs, a_head())

    def query(connection: sqlite3.Connection) -> Any:
        sqlite_home.close()
        return connection.execute("SELECT run_id FROM heads").fetchone()[0]

    assert sqlite_home.database.read(query) == RUN
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_file_that_another_process_locks_refuses(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOCKED_SECONDS", 0.01)
    home = SqliteHome(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(NotWritten, match="database is locked") as caught:
        home.runs.create(a_head())
    assert caught.value.reason == "the file is locked by another process"
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    assert home.runs.get(RUN) is None
    other.close()
    put(home.runs, a_head())
    home.close()


def test_a_disk_without_room_refuses(path: Path) -> None:
    home = SqliteHome(path)
    home.database.write(lambda connection: connection.execute("PRAGMA max_page_count = 1"))
    large = Blob("input", bytes(100_000))
    with pytest.raises(NotWritten, match="disk is full") as caught:
        home.runs.create(a_head(), [large])
    assert caught.value.reason == "disk full"
    assert home.runs.get(RUN) is None
    home.database.write(lambda connection: connection.execute("PRAGMA max_page_count = 100000"))
    assert home.runs.create(a_head(), [large]) == Done(a_head())
    home.close()
