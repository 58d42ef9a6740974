"""A table of runs whose list index has partitions as DynamoDB's: each takes so much a second."""

import bisect
from collections import Counter, defaultdict
from typing import Any

from botocore.exceptions import ClientError  # type: ignore[import-untyped]

from tools.moto_home import client

LIMIT = 1_000  # writes a second of one partition, and at once after a second's rest


class SkippedTime:
    """A clock that a test moves, and whoever pauses."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.paused = 0

    def now(self) -> int:
        return self.at

    def sleep(self, ms: int) -> None:
        self.at += ms
        self.paused += ms


class Partitions:
    """What DynamoRuns calls to create and to list, in memory. Counts queries, and refusals."""

    def __init__(self, clock: SkippedTime) -> None:
        self._clock = clock
        self._items: dict[tuple[bytes, str], dict[str, Any]] = {}
        self._index: defaultdict[str, list[tuple[bytes, str]]] = defaultdict(list)
        self._room: dict[str, tuple[float, int]] = {}
        self.throttled = self.queries = 0
        self.busiest: Counter[tuple[str, int]] = Counter()  # by partition and second

    def put_item(self, **arguments: Any) -> Any:
        item = arguments["Item"]
        key, owner = (item["r"]["B"], item["k"]["S"]), item["g"]["S"]
        if key in self._items:
            if "ConditionExpression" in arguments:
                raise _error("ConditionalCheckFailedException")
            return {}
        self._take(owner)
        self._items[key] = item
        bisect.insort(self._index[owner], key)
        return {}

    def get_item(self, **arguments: Any) -> Any:
        key = arguments["Key"]
        found = self._items.get((key["r"]["B"], key["k"]["S"]))
        return {} if found is None else {"Item": found}

    def batch_get_item(self, **arguments: Any) -> Any:
        ((table, wanted),) = arguments["RequestItems"].items()
        keys = [(key["r"]["B"], key["k"]["S"]) for key in wanted["Keys"]]
        return {"Responses": {table: [self._items[key] for key in keys]}, "UnprocessedKeys": {}}

    def query(self, **arguments: Any) -> Any:
        self.queries += 1
        values = arguments["ExpressionAttributeValues"]
        entries = self._index[values[":owner"]["S"]]
        low, high = 0, len(entries)
        if ":before" in values:
            high = bisect.bisect_left(entries, (values[":before"]["B"], ""))
        if ":low" in values:
            low = bisect.bisect_left(entries, (values[":low"]["B"], ""))
            high = bisect.bisect_left(entries, (values[":high"]["B"], "~"))
        if "ExclusiveStartKey" in arguments:
            start = arguments["ExclusiveStartKey"]
            high = bisect.bisect_left(entries, (start["r"]["B"], start["k"]["S"]))
        found = entries[max(low, high - arguments["Limit"]) : high][::-1]
        items = [{"r": {"B": run_id}, "k": {"S": kind}} for run_id, kind in found]
        goes_on = len(found) == arguments["Limit"]
        return {"Items": items, **({"LastEvaluatedKey": items[-1]} if goes_on else {})}

    def _take(self, owner: str) -> None:
        """A bucket of tokens, as DynamoDB has for each partition."""
        now = self._clock.now()
        left, at = self._room.get(owner, (LIMIT, now))
        left = min(LIMIT, left + (now - at) * LIMIT / 1000)
        self._room[owner] = (left - (left >= 1), now)
        if left < 1:
            self.throttled += 1
            raise _error("ThrottlingException")
        self.busiest[owner, now // 1000] += 1


class FullList:
    """moto, with a list index whose partition of a workflow takes nothing more."""

    def __getattr__(self, name: str) -> Any:
        return getattr(client(), name)

    def put_item(self, **arguments: Any) -> Any:
        self._check([arguments["Item"]], "ThrottlingException")
        return client().put_item(**arguments)

    def transact_write_items(self, **arguments: Any) -> Any:
        puts = [write["Put"]["Item"] for write in arguments["TransactItems"]]
        self._check(puts, "TransactionCanceledException")
        return client().transact_write_items(**arguments)

    @staticmethod
    def _check(items: list[Any], code: str) -> None:
        if any(item["k"]["S"] == "h" and item["g"]["S"] == "shop#order" for item in items):
            reasons = [{"Code": "ThrottlingError"}, {"Code": "None"}]
            answer: Any = {
                "Error": {"Code": code, "Message": "slow down"},
                "CancellationReasons": reasons,
            }
            raise ClientError(answer, "PutItem")


def _error(code: str) -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": code}}
    return ClientError(answer, "PutItem")
