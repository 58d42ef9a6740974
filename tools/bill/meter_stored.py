"""What the meter knows of tables: their keys and indexes, and the items that a call will write."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from tools.bill.meter_sizes import Item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True)
class Index:
    """A secondary index. `keys` are its own and its table's; `others` what it holds beside them.

    `others` None: everything.
    """

    name: str
    partition: str  # the name of its partition key
    own_keys: frozenset[str]
    keys: frozenset[str]
    others: frozenset[str] | None

    def entry(self, item: Item | None) -> Item | None:
        """What the index holds of an item; None if the item lacks one of the index's own keys."""
        if item is None or not self.own_keys <= item.keys():
            return None
        if self.others is None:
            return item
        names = self.keys | self.others
        return {name: value for name, value in item.items() if name in names}


@dataclass(frozen=True, slots=True)
class Table:
    """The keys and indexes of a table."""

    partition: str
    keys: frozenset[str]
    indexes: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Write:
    """An item that a call writes: as it was before, and what a put wants it to be."""

    table: str
    key: Item
    before: Item | None
    wanted: Item | None


class Stored:
    """Reads tables and items over a client that nobody watches."""

    def __init__(self, reader: "DynamoDBClient") -> None:
        self._reader = reader
        self.table = cache(self._describe)

    def get(self, table: str, key: Item) -> Item | None:
        """An item as it is."""
        return self._reader.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item")

    def writes_of(self, operation: str, params: Mapping[str, Any]) -> Iterator[Write]:
        """The items that a call is about to write; none for a read."""
        if operation in ("PutItem", "UpdateItem", "DeleteItem"):
            yield self._write(params)
        elif operation == "TransactWriteItems":
            for action in params["TransactItems"]:
                (content,) = action.values()
                yield self._write(content)

    def _write(self, params: Mapping[str, Any]) -> Write:
        table, wanted = params["TableName"], params.get("Item")
        source = params["Key"] if wanted is None else wanted
        key = {name: source[name] for name in self.table(table).keys}
        return Write(table, key, self.get(table, key), wanted)

    def _describe(self, name: str) -> Table:
        return table_of(self._reader.describe_table(TableName=name)["Table"])


def table_of(description: Any) -> Table:
    """A table from its description, or from the arguments that create it."""
    keys = _names(description["KeySchema"])
    return Table(
        _partition(description["KeySchema"]),
        keys,
        tuple(
            Index(
                index["IndexName"],
                _partition(index["KeySchema"]),
                _names(index["KeySchema"]),
                _names(index["KeySchema"]) | keys,
                _others(index["Projection"]),
            )
            for index in description.get("GlobalSecondaryIndexes", ())
        ),
    )


def _partition(schema: Any) -> str:
    (name,) = (key["AttributeName"] for key in schema if key["KeyType"] == "HASH")
    return str(name)


def _names(schema: Any) -> frozenset[str]:
    return frozenset(key["AttributeName"] for key in schema)


def _others(projection: Any) -> frozenset[str] | None:
    if projection["ProjectionType"] == "ALL":
        return None
    return frozenset(projection.get("NonKeyAttributes", ()))
