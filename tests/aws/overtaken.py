"""A DynamoDB that others write to between two calls of one method."""

from collections.abc import Callable, Sequence
from typing import Any

from stepwell_engine.adapters.dynamodb.client import DynamoDB, Item, Rejected
from stepwell_engine.adapters.process.system import SystemClock
from tools.moto_home import client


class Overtaken(DynamoDB):
    """Others write before the calls that are numbered, from 1 on."""

    def __init__(self, *others: Callable[[], object]) -> None:
        super().__init__(client(), SystemClock())
        self._others = list(others)
        self.calls = 0

    def _let_others_write(self) -> None:
        self.calls += 1
        if self._others:
            self._others.pop(0)()

    def update(self, table: str, key: Item, **arguments: Any) -> Item | Rejected:
        self._let_others_write()
        return super().update(table, key, **arguments)

    def transact(
        self, token: str, items: Sequence[Item], *, patient: bool = True
    ) -> Sequence[Rejected | None]:
        self._let_others_write()
        return super().transact(token, items, patient=patient)


def nothing() -> None:
    """Let a call pass."""
