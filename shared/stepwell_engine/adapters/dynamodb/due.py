"""What is due, from the sharded index: shard after shard, each in order of time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from stepwell_engine.adapters.dynamodb.client import DynamoDB, Item
from stepwell_engine.adapters.dynamodb.heads import key_of, project_of, readable
from stepwell_engine.adapters.dynamodb.models import DueRuns, HeadItem
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.core.values.units import EpochMs, RunId
from stepwell_engine.limits import MINUTE
from stepwell_engine.ports import Due

_RUN_ID: Final = HeadItem.run_id.attr_name
_OWNER: Final = HeadItem.owner.attr_name
_SHARD: Final = DueRuns.shard.attr_name
_WAKE_AT: Final = DueRuns.wake_at.attr_name
_OF_SHARD: Final = f"{_SHARD} = :shard AND {_WAKE_AT} <= :before"


@dataclass(frozen=True, slots=True)
class Place:
    """Where to go on: the `turn`-th shard from the `first` on, there behind an entry, if any."""

    first: int
    turn: int = 0
    wake_at: EpochMs = 0
    run_id: RunId = ""

    def __str__(self) -> str:
        return f"{self.first}:{self.turn}:{self.wake_at}:{self.run_id}"

    @classmethod
    def of(cls, cursor: str) -> "Place":
        """The place that `str` of it was."""
        first, turn, wake_at, run_id = cursor.split(":", 3)
        return cls(int(first), int(turn), int(wake_at), run_id)


class DueIndex:
    """The due index of the table of runs."""

    def __init__(self, database: DynamoDB, table: str, shards: int) -> None:
        self._database = database
        self._table = table
        self._shards = shards

    def page(self, before: EpochMs, cursor: str | None, limit: int) -> tuple[list[Due], str | None]:
        """At most `limit` entries with wake_at <= before; a last page may be empty.

        Each minute begins at another shard, so that none is always the last one.
        """
        position = Place(before // MINUTE % self._shards) if cursor is None else Place.of(cursor)
        found: list[Due] = []
        while position.turn < self._shards and len(found) < limit:
            items, goes_on = self._query(before, position, limit - len(found))
            found += [_due(item) for item in items if readable(item)]
            if goes_on:
                last = _due(items[-1])
                position = Place(position.first, position.turn, last.wake_at, last.subject.id)
            else:
                position = Place(position.first, position.turn + 1)
        return found, str(position) if position.turn < self._shards else None

    def _query(self, before: EpochMs, position: Place, limit: int) -> tuple[Sequence[Item], bool]:
        shard = {"N": str((position.first + position.turn) % self._shards)}
        arguments: dict[str, Any] = {}
        if position.run_id:
            arguments["ExclusiveStartKey"] = {
                **key_of(position.run_id),
                _SHARD: shard,
                _WAKE_AT: {"N": str(position.wake_at)},
            }
        items, following = self._database.query(
            self._table,
            IndexName=DueRuns.Meta.index_name,
            KeyConditionExpression=_OF_SHARD,
            ExpressionAttributeValues={":shard": shard, ":before": {"N": str(before)}},
            Limit=limit,
            **arguments,
        )
        return items, following is not None


def _due(item: Item) -> Due:
    project = project_of(item[_OWNER]["S"])
    run_id = HeadItem.run_id.deserialize(item[_RUN_ID]["B"])
    return Due(about_run(run_id, project), int(item[_WAKE_AT]["N"]))
