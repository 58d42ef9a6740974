"""What is stored: the rows of today's code are those of the golden file, and those are read.

A change that breaks this breaks the files of people who upgrade: it needs a new format number.
"""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stepwell_engine.adapters.sqlite.schema import SCHEMA, VERSION
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind, Slot
from stepwell_engine.core.run.status import Status
from stepwell_engine.limits import RUN_FORMAT
from stepwell_engine.ports import Delivered, Done, Published
from tests.contract.homes import SqliteHome

FOLDER = Path(__file__).parents[1] / "golden"
GOLDEN = FOLDER / "sqlite_rows.json"
BEFORE_DEADLINES = FOLDER / "sqlite_rows_before_deadlines.json"
BEFORE_OVERFLOW = FOLDER / "sqlite_rows_before_overflow.json"
COLUMNS = 'SELECT name, type, "notnull" FROM pragma_table_info(?)'
OLDER = FOLDER / "sqlite_version_1.sql"
TABLES = (
    "heads",
    "mail",
    "overflow",
    "deliveries",
    "blobs",
    "keys",
    "queues",
    "messages",
    "published",
)

CREATED = Head(
    run_id="01890000-0000-7000-8000-00000000000a",
    project="shop",
    workflow="order",
    version=3,
    created_at=1_800_000_000_001,
    status=Status.WAITING,
    ended_at=1_800_000_000_002,
    ready_at=1_800_000_000_003,
    wake_at=1_800_000_000_004,
    lease_token="aaaaaaaaaaaa",
    lease_expires_at=1_800_000_000_005,
    claimed_at=1_800_000_000_015,
    inbox_seq=6,
    commit_seq=7,
    lost_leases=8,
    journal=b'{"journal":1}',
    inbox={
        "m1": InboxMessage(MessageKind.SIGNAL, "paid", 1_800_000_000_009, b'{"amount":49}'),
        "m2": InboxMessage(MessageKind.CHILD, "", 1_800_000_000_010, None, "mail/m2"),
    },
    input=b'{"order":17}',
    idempotency_key="order-17",
    test=True,
    parent="01890000-0000-7000-8000-00000000000b",
    depth=1,
    notify_pending=True,
    cascade=True,
    deadline=1_800_000_000_016,
    generation=2,
    told=True,
)
SIGNAL = InboxMessage(MessageKind.SIGNAL, "approved", 1_800_000_000_014, b"null")
HEAD = replace(CREATED, inbox_seq=7, overflow_last=1, overflow_count=1, format=RUN_FORMAT)
PLAIN = replace(HEAD, deadline=None, generation=0, told=False)
OLDER_HEAD = replace(
    PLAIN,
    ready_at=0,
    inbox={**CREATED.inbox, "m3": SIGNAL},
    format=1,
    overflow_last=0,
    overflow_count=0,
)
BLOB = Blob("mail/m2", b'{"large":true}')


def as_json(value: object) -> Any:
    """A column's value; bytes are told apart from text."""
    return {"bytes": value.decode()} if isinstance(value, bytes) else value


def as_value(stored: Any) -> Any:
    """The opposite of as_json."""
    return stored["bytes"].encode() if isinstance(stored, dict) else stored


def rows(connection: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    cursor = connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3")  # noqa: S608 - ours
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, map(as_json, row), strict=True)) for row in cursor]


def insert(connection: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    sql = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608 - ours
    connection.execute(sql, [as_value(value) for value in row.values()])


def test_rows_are_written_as_in_the_golden_file(sqlite_home: SqliteHome) -> None:
    assert sqlite_home.runs.create(CREATED, [BLOB]) == Done(CREATED)
    written = sqlite_home.runs.deliver(
        HEAD.run_id, "m3", SIGNAL, 1_800_000_000_004, None, "approval-42"
    )
    assert written == Delivered(HEAD, SIGNAL.at, wakes=False)
    sqlite_home.queues.create("shop", "orders", 30_000, 3)
    sqlite_home.queues.send("shop", "orders", b'{"order":18}', 1_800_000_000_011)
    sqlite_home.queues.receive("shop", "orders", 1, 1_800_000_000_012)
    sqlite_home.versions.publish("shop", "order", b'{"steps":[]}', True, 1_800_000_000_013)
    stored = sqlite_home.database.read(lambda c: {table: rows(c, table) for table in TABLES})
    assert {"user_version": VERSION, **stored} == json.loads(GOLDEN.read_text())


@pytest.mark.parametrize(("file", "head"), [(GOLDEN, HEAD), (BEFORE_DEADLINES, PLAIN)])
def test_rows_of_the_golden_file_are_read(path: Path, file: Path, head: Head) -> None:
    SqliteHome(path).close()
    put_golden(path, file)
    check_read(path, head)
    home = SqliteHome(path)
    slot = Slot("m3", SIGNAL, "approval-42", generation=head.generation)
    assert home.runs.overflow(HEAD.run_id, 1, 1) == {1: slot}
    home.close()


def test_a_file_without_an_overflow_gets_one_and_stays_readable_for_older_versions(
    path: Path,
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in SCHEMA:
            connection.execute(statement)
        names = [row[1] for row in connection.execute("PRAGMA table_info(heads)")]
    put_golden(path, BEFORE_OVERFLOW)
    check_read(path, OLDER_HEAD)
    assert shape(path) == shape(path.with_name("new"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        # As an older version inserts: it names the columns that it knows.
        values = f"SELECT 'other', {', '.join(names[1:])} FROM heads"  # noqa: S608 - ours
        connection.execute(f"INSERT INTO heads ({', '.join(names)}) {values}")
    home = SqliteHome(path)
    other = home.runs.get("other")
    assert other == replace(OLDER_HEAD, run_id="other", inbox={})
    home.close()


def put_golden(path: Path, name: Path) -> None:
    """The rows of a golden file, into the tables of a file."""
    golden = json.loads(name.read_text())
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA user_version = {golden.pop('user_version')}")
    for table, content in golden.items():
        for row in content:
            insert(connection, table, row)
    connection.close()


def test_a_file_of_version_1_is_upgraded(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(OLDER.read_text())
    connection.close()
    check_read(path, replace(OLDER_HEAD, claimed_at=0, cascade=False))
    assert shape(path) == shape(path.with_name("new"))


def shape(path: Path) -> tuple[int, dict[str, set[tuple[str, str, int]]]]:
    """The version of a file, and its columns: name, type, whether they must be set."""
    SqliteHome(path).close()
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        columns = {
            table: set(connection.execute(COLUMNS, (table,))) for (table,) in tables.fetchall()
        }
        return connection.execute("PRAGMA user_version").fetchone()[0], columns


def check_read(path: Path, head: Head) -> None:
    home = SqliteHome(path)
    assert home.runs.get(head.run_id) == head
    assert home.runs.by_key("shop", "order", "order-17") == head
    assert home.runs.blob(HEAD.run_id, BLOB.name) == BLOB.data
    again = home.runs.deliver(HEAD.run_id, "m4", SIGNAL, 0, None, "approval-42")
    assert again == Delivered(head, SIGNAL.at)
    (message,) = home.queues.peek("shop", "orders", None, 10, False)
    assert (message.body, message.receives) == (b'{"order":18}', 1)
    assert home.queues.delete_message("shop", "orders", "1.1")
    assert home.queues.send("shop", "orders", b"x", 0) == 2
    assert home.versions.newest_enabled("shop", "order") == Published(
        "shop", "order", 1, True, 1_800_000_000_013, b'{"steps":[]}', 1
    )
    home.close()
