"""The control table, as its stores read it: keys, single items, pages of a partition."""

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

from pynamodb.models import Model

from stepwell_engine.adapters.dynamodb.client import DynamoDB, Item
from stepwell_engine.adapters.dynamodb.models import ControlItem
from stepwell_engine.core.values.units import Ms
from stepwell_engine.limits import SECOND

M = TypeVar("M", bound=Model)

PARTITION: Final = ControlItem.partition.attr_name
NAME: Final = ControlItem.name.attr_name
EXISTS: Final = f"attribute_exists({PARTITION})"
IS_NEW: Final = f"attribute_not_exists({PARTITION})"


class ControlTable:
    """What changes seldom and is read often."""

    def __init__(self, database: DynamoDB, table: str) -> None:
        self.database = database
        self.name = table

    def put(self, item: Model) -> None:
        """Create or replace an item."""
        self.database.put(self.name, item.serialize())

    def seldom_changed(self, partition: str, name: str, within: Ms | None = None) -> Item | None:
        """An item at half the price: a replaced one may show up a moment late, a new one never.

        Unavailable if it takes more than `within` ms.
        """
        key = key_of(partition, name)
        ends = None if within is None else time.monotonic() + within / SECOND
        found = self.database.get(self.name, key, consistent=False, ends=ends)
        return found or self.database.get(self.name, key, ends=ends)

    def find(self, model: type[M], partition: str, name: str, within: Ms | None = None) -> M | None:
        """An item as its model, or None; read as `seldom_changed`."""
        item = self.seldom_changed(partition, name, within)
        return None if item is None else model.from_raw_data(dict(item))

    def pages(self, partition: str, after: str | None, limit: int) -> Iterator[Sequence[Item]]:
        """The items of a partition with names above `after`, page by page."""
        condition, values = f"{PARTITION} = :partition", {":partition": {"S": partition}}
        if after:
            condition = f"{condition} AND {NAME} > :after"
            values[":after"] = {"S": after}
        start: dict[str, Item] = {}
        while True:
            items, following = self.database.query(
                self.name,
                KeyConditionExpression=condition,
                ExpressionAttributeValues=values,
                ConsistentRead=True,
                Limit=limit,
                **start,
            )
            yield items
            if following is None:
                return
            start = {"ExclusiveStartKey": following}


def key_of(partition: str, name: str) -> dict[str, Any]:
    """The primary key of an item."""
    return {PARTITION: {"S": partition}, NAME: {"S": name}}
