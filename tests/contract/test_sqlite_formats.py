"""Queues and versions that a newer version wrote into the same file."""

from collections.abc import Callable
from typing import Any

import pytest

from stepwell_engine.errors import NewerFormat
from stepwell_engine.limits import FORMAT
from tests.contract.heads import NOW
from tests.contract.homes import SqliteHome
from tests.contract.test_queues import CALLS as QUEUE_CALLS
from tests.contract.test_queues import Call

VERSION_CALLS: dict[str, Callable[[SqliteHome], Any]] = {
    "version": lambda home: home.versions.get("shop", "order", 2),
    "newest": lambda home: home.versions.newest("shop", "order"),
    "newest_enabled": lambda home: home.versions.newest_enabled("shop", "order"),
    "set_enabled": lambda home: home.versions.set_enabled("shop", "order", False),
}


def raise_format(home: SqliteHome, table: str, where: str) -> None:
    sql = f"UPDATE {table} SET format = {FORMAT + 1} WHERE {where}"  # noqa: S608 - ours
    home.database.write(lambda connection: connection.execute(sql))


def rows(home: SqliteHome) -> list[Any]:
    """Everything in the tables concerned."""
    return home.database.read(
        lambda connection: [
            connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608 - ours
            for table in ("queues", "messages", "published")
        ]
    )


@pytest.mark.parametrize("name", [*QUEUE_CALLS, "create"])
def test_a_newer_queue_is_left_alone(sqlite_home: SqliteHome, name: str) -> None:
    queues = sqlite_home.queues
    queues.create("shop", "orders", 1_000, 1)
    for _ in range(2):
        queues.send("shop", "orders", b"x", NOW)
    queues.receive("shop", "orders", 1, NOW)
    raise_format(sqlite_home, "queues", "queue = 'orders'")
    before = rows(sqlite_home)
    calls: dict[str, Call] = {
        **QUEUE_CALLS,
        "create": lambda queues, project, name: queues.create(project, name, 2_000, 2),
    }
    with pytest.raises(NewerFormat, match="queue orders of project shop was written in format 2"):
        calls[name](queues, "shop", "orders")
    assert rows(sqlite_home) == before


@pytest.mark.parametrize("name", VERSION_CALLS)
def test_a_newer_version_is_left_alone(sqlite_home: SqliteHome, name: str) -> None:
    for _ in range(2):
        sqlite_home.versions.publish("shop", "order", b"{}", True, NOW)
    raise_format(sqlite_home, "published", "version = 2")
    before = rows(sqlite_home)
    with pytest.raises(NewerFormat, match=r"workflow order was written in format 2"):
        VERSION_CALLS[name](sqlite_home)
    assert rows(sqlite_home) == before


def test_an_older_version_beside_a_newer_one_is_read(sqlite_home: SqliteHome) -> None:
    first = sqlite_home.versions.publish("shop", "order", b"{}", True, NOW)
    sqlite_home.versions.publish("shop", "order", b"{}", False, NOW)
    raise_format(sqlite_home, "published", "version = 2")
    assert sqlite_home.versions.get("shop", "order", 1) == first
    assert sqlite_home.versions.newest_enabled("shop", "order") == first
    assert sqlite_home.versions.publish("shop", "order", b"{}", True, NOW).version == 3


def test_newer_versions_are_not_listed_and_hide_no_other(sqlite_home: SqliteHome) -> None:
    for name in "abcd":
        sqlite_home.versions.publish("shop", name, b"{}", True, NOW)
    raise_format(sqlite_home, "published", "workflow IN ('a', 'c')")
    listed = sqlite_home.versions.list("shop", None, 2)
    assert [one.workflow for one in listed] == ["b", "d"]
