"""The steps of a delivery in every home, one by one, as crashes and other deliverers cut them."""

from collections.abc import Callable
from typing import Any

from stepwell_engine.adapters.delivery import InboxStore
from stepwell_engine.adapters.memory.runs import MemoryRuns
from stepwell_engine.adapters.sqlite.inbox import SqliteInboxes
from stepwell_engine.core.run.head import Head
from stepwell_engine.ports import Runs
from tests.contract.homes import Home, SqliteHome


class EachInATransaction:
    """The steps in SQLite, where a delivery takes them all in one transaction."""

    def __init__(self, home: SqliteHome) -> None:
        self._database = home.database

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def step(*arguments: Any) -> Any:
            return self._database.write(lambda one: getattr(SqliteInboxes(one), name)(*arguments))

        return step


def steps_of(home: Home) -> InboxStore:
    """The steps in a home."""
    if isinstance(home.runs, MemoryRuns):
        return home.runs
    if isinstance(home, SqliteHome):
        steps: Any = EachInATransaction(home)
    else:
        steps = home.runs._inboxes  # type: ignore[attr-defined]  # DynamoDB's
    found: InboxStore = steps
    return found


def pending(runs: Runs, head: Head | None) -> list[str]:
    """The ids of what was delivered to a run that took nothing of its overflow, in order."""
    assert head is not None
    slots = runs.overflow(head.run_id, 1, head.overflow_last)
    assert list(slots) == list(range(1, head.overflow_last + 1))
    beside = [slot.id for slot in slots.values() if not slot.void]
    assert len(beside) == head.overflow_count
    return [*head.inbox, *beside]
