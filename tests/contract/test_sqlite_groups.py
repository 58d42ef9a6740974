"""Group commit: what waits goes into one transaction, and fails alone."""

import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from stepwell_engine.adapters.sqlite.database import Database
from stepwell_engine.errors import StoreError, Unavailable
from tests.contract.homes import SqliteHome


def put_project(ref: str) -> Callable[[sqlite3.Connection], str]:
    def operation(connection: sqlite3.Connection) -> str:
        connection.execute("INSERT INTO projects VALUES (?, 'acme-inc', 0)", (ref,))
        return ref

    return operation


def failing(ref: str, error: Exception) -> Callable[[sqlite3.Connection], str]:
    def operation(connection: sqlite3.Connection) -> str:
        put_project(ref)(connection)
        raise error

    return operation


def refusing(error: Exception) -> Callable[[sqlite3.Connection], str]:
    def operation(_: sqlite3.Connection) -> str:
        raise error

    return operation


def stored(database: Database) -> set[str]:
    sql = "SELECT ref FROM projects"
    return {row[0] for row in database.read(lambda c: c.execute(sql).fetchall())}


def together(
    database: Database, *operations: Callable[[sqlite3.Connection], str]
) -> list[Future[str]]:
    """Write all operations in one group: they queue up while a first one is being written."""
    started, go = threading.Event(), threading.Event()

    def first(_: sqlite3.Connection) -> str:
        started.set()
        go.wait()
        return "first"

    with ThreadPoolExecutor(len(operations) + 1) as pool:
        leader = pool.submit(database.write, first)
        started.wait()
        futures = []
        for number, operation in enumerate(operations, 1):
            futures.append(pool.submit(database.write, operation))
            while len(database._pending) < number:
                time.sleep(0.001)
        go.set()
    assert leader.result() == "first"
    return futures


def test_operations_that_wait_are_committed_together(sqlite_home: SqliteHome) -> None:
    statements: list[str] = []
    sqlite_home.database._writer.set_trace_callback(statements.append)
    futures = together(sqlite_home.database, *(put_project(ref) for ref in "abcd"))
    assert [future.result() for future in futures] == ["a", "b", "c", "d"]
    assert statements.count("COMMIT") == 2
    assert stored(sqlite_home.database) == {"a", "b", "c", "d"}


def test_an_operation_that_fails_takes_no_other_with_it(sqlite_home: SqliteHome) -> None:
    error = ValueError("x")
    futures = together(
        sqlite_home.database,
        put_project("a"),
        failing("b", error),
        put_project("c"),
        put_project("c"),
    )
    assert futures[0].result() == "a"
    assert futures[1].exception() is error
    assert futures[2].result() == "c"
    assert isinstance(futures[3].exception(), sqlite3.IntegrityError)
    assert stored(sqlite_home.database) == {"a", "c"}


@pytest.mark.parametrize("error", [KeyError("x"), StoreError("x"), ValueError("x")])
def test_an_operation_that_refuses_leaves_the_group_together(
    sqlite_home: SqliteHome, error: Exception
) -> None:
    statements: list[str] = []
    sqlite_home.database._writer.set_trace_callback(statements.append)
    futures = together(sqlite_home.database, put_project("a"), refusing(error), put_project("c"))
    assert futures[1].exception() is error
    assert statements.count("COMMIT") == 2
    assert stored(sqlite_home.database) == {"a", "c"}


def test_a_refusal_is_forgotten_when_the_group_is_written_one_by_one(
    sqlite_home: SqliteHome,
) -> None:
    seen: list[str] = []

    def refuses_once(connection: sqlite3.Connection) -> str:
        # As if another process had written between the two transactions.
        seen.append("a")
        if len(seen) == 1:
            raise KeyError("a")
        return put_project("a")(connection)

    futures = together(sqlite_home.database, refuses_once, failing("b", ValueError("x")))
    assert futures[0].result() == "a"
    assert stored(sqlite_home.database) == {"a"}


ERRORS = [KeyError("x"), StoreError("x"), Unavailable("x"), ValueError("x"), TimeoutError("x")]


def unfinished(ref: str, error: Exception) -> Callable[[sqlite3.Connection], str]:
    """Writes by a statement of which a row is still to be fetched when it fails."""

    def operation(connection: sqlite3.Connection) -> str:
        _cursor = connection.execute(
            "INSERT INTO projects VALUES (?, 'acme-inc', 0), (?, 'acme-inc', 0) RETURNING ref",
            (ref, f"{ref}{ref}"),
        )
        raise error

    return operation


@pytest.mark.parametrize("operation", [failing, unfinished])
@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_operation_that_fails_alone_leaves_nothing(
    sqlite_home: SqliteHome, operation: Callable[..., Any], error: Exception
) -> None:
    with pytest.raises(type(error)) as raised:
        sqlite_home.database.write(operation("a", error))
    assert raised.value is error
    assert stored(sqlite_home.database) == set()
    assert sqlite_home.database.write(put_project("b")) == "b"


@pytest.mark.parametrize("operation", [failing, unfinished])
@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_operation_that_fails_in_a_group_leaves_nothing_but_its_neighbours(
    sqlite_home: SqliteHome, operation: Callable[..., Any], error: Exception
) -> None:
    futures = together(
        sqlite_home.database,
        put_project("a"),
        refusing(KeyError("y")),
        operation("b", error),
        put_project("c"),
    )
    assert [futures[0].result(), futures[3].result()] == ["a", "c"]
    assert isinstance(futures[1].exception(), KeyError)
    assert futures[2].exception() is error
    assert stored(sqlite_home.database) == {"a", "c"}


class Stubborn:
    """A connection on which a statement works once, then meets a failing disk."""

    def __init__(self, connection: sqlite3.Connection, refused: str) -> None:
        self._connection = connection
        self._refused = refused
        self._seen = 0

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql.startswith(self._refused):
            self._seen += 1
            if self._seen > 1:
                raise sqlite3.OperationalError("disk I/O error")
        return self._connection.execute(sql, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@pytest.mark.parametrize("statement", ["BEGIN", "COMMIT"])
def test_a_transaction_that_fails_is_unavailable_for_all(
    sqlite_home: SqliteHome, statement: str
) -> None:
    database = sqlite_home.database
    writer = database._writer
    database._writer = Stubborn(writer, statement)  # type: ignore[assignment]
    for future in together(database, put_project("a"), put_project("b")):
        error = future.exception()
        assert isinstance(error, Unavailable)
        assert isinstance(error.__cause__, sqlite3.OperationalError)
    database._writer = writer
    assert not writer.in_transaction
    assert stored(database) == set()
    assert database.write(put_project("c")) == "c"


def test_an_interrupted_leader_leaves_nobody_waiting(sqlite_home: SqliteHome) -> None:
    class Interrupt(BaseException):
        """What Ctrl-C raises in the middle of an operation."""

    def interrupted(connection: sqlite3.Connection) -> str:
        put_project("b")(connection)
        raise Interrupt

    futures = together(sqlite_home.database, put_project("a"), interrupted, put_project("c"))
    errors = [future.exception() for future in futures]
    assert {type(error) for error in errors} == {Unavailable, Interrupt}
    assert stored(sqlite_home.database) == set()
    assert sqlite_home.database.write(put_project("d")) == "d"
