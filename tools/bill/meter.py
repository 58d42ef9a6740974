"""A meter that counts what AWS bills: DynamoDB units, SQS requests, Lambda time.

It listens to the calls of the clients that it watches, and reads every item before and after
a write, over a client of its own: for tests and benchmarks, never for an installation. Of a
refused update only the stored item is known, so what it would have grown to is not counted.
Reads that filter or project would be billed by what they looked at; nothing here does either.
"""

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tools.bill.meter_sizes import index_units, item_size, read_units, write_units
from tools.bill.meter_stored import Stored, Write

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SQS_CHUNK: Final = 64 * 1024  # bytes of one billed request
_REFUSED: Final = frozenset({"ConditionalCheckFailedException", "TransactionCanceledException"})
_CALL: Final = "stepwell-meter"  # what a call's context carries from before to after
_TRANSACTION: Final = 2  # every item is written twice

_FIRST_OF_CONDITION: Final = re.compile(r"(\w+) = (:\w+)")  # of a query: the partition

Billed = tuple[str, str]  # a label and what was billed under it
Partition = tuple[str, str]  # a table's or an index's name, and the partition key's value


@dataclass(frozen=True, slots=True)
class Bill:
    """What was counted, and under which label each unit."""

    write_units: float
    read_units: float
    sqs_requests: int
    lambda_invocations: int
    lambda_gb_seconds: float
    writes: Mapping[Billed, float] = field(default_factory=dict)
    reads: Mapping[Billed, float] = field(default_factory=dict)
    written: Mapping[Partition, float] = field(default_factory=dict)
    read: Mapping[Partition, float] = field(default_factory=dict)


class Meter:
    """Counts from the moment it watches. Several threads may call at once."""

    def __init__(self, reader: "DynamoDBClient") -> None:
        """`reader` reads what is stored; it is not watched itself."""
        self._stored = Stored(reader)
        self._lock = threading.Lock()
        self._writes: defaultdict[Billed, float] = defaultdict(float)
        self._reads: defaultdict[Billed, float] = defaultdict(float)
        self._written: defaultdict[Partition, float] = defaultdict(float)
        self._read: defaultdict[Partition, float] = defaultdict(float)
        self._sqs = 0
        self._invocations = 0
        self._gb_seconds = 0.0
        self._label = ""

    def watch(self, client: Any) -> None:
        """Count the calls of a DynamoDB or SQS client from now on."""
        for event, handler in self._handlers(client):
            client.meta.events.register(event, handler)

    def unwatch(self, client: Any) -> None:
        """Count them no longer."""
        for event, handler in self._handlers(client):
            client.meta.events.unregister(event, handler)

    @contextmanager
    def label(self, name: str) -> Iterator[None]:
        """Put what is counted meanwhile under a name."""
        outer, self._label = self._label, name
        try:
            yield
        finally:
            self._label = outer

    def sqs(self, requests: int) -> None:
        """Count requests that are made by nobody's client, such as those of an event source."""
        with self._lock:
            self._sqs += requests

    def invoked(self, ms: float, memory_mb: int) -> None:
        """Count an invocation of a Lambda function."""
        with self._lock:
            self._invocations += 1
            self._gb_seconds += ms / 1000 * memory_mb / 1024

    def bill(self) -> Bill:
        """All that was counted so far."""
        with self._lock:
            return Bill(
                write_units=sum(self._writes.values()),
                read_units=sum(self._reads.values()),
                sqs_requests=self._sqs,
                lambda_invocations=self._invocations,
                lambda_gb_seconds=self._gb_seconds,
                writes=dict(self._writes),
                reads=dict(self._reads),
                written=dict(self._written),
                read=dict(self._read),
            )

    # --- what happens -------------------------------------------------------------------------

    def _handlers(self, client: Any) -> Sequence[tuple[str, Callable[..., None]]]:
        service = client.meta.service_model.service_name
        after: Callable[..., None] = self._after_sqs if service == "sqs" else self._after_dynamodb
        return (
            (f"before-parameter-build.{service}", self._before),
            (f"after-call.{service}", after),
        )

    def _before(self, params: Any, model: Any, context: Any, **_: Any) -> None:
        context[_CALL] = (params, tuple(self._stored.writes_of(model.name, params)))

    def _after_dynamodb(self, parsed: Any, model: Any, context: Any, **_: Any) -> None:
        params, writes = context[_CALL]
        code = parsed.get("Error", {}).get("Code")
        if writes and code in (None, *_REFUSED):
            times = _TRANSACTION if model.name == "TransactWriteItems" else 1
            for write in writes:
                self._count_write(write, times, refused=code is not None)
        elif not writes and code is None:
            for partition, units in self._read_units(model.name, params, parsed):
                self._count(self._reads, model.name, units)
                self._add(self._read, partition, units)

    def _after_sqs(self, parsed: Any, context: Any, **_: Any) -> None:
        params, _writes = context[_CALL]
        sent = [params, *params.get("Entries", ()), *parsed.get("Messages", ())]
        size = sum(_body(one) for one in sent)
        self.sqs(max(1, -(-size // SQS_CHUNK)))

    # --- DynamoDB -----------------------------------------------------------------------------

    def _count_write(self, write: Write, times: int, refused: bool) -> None:
        after = write.wanted if refused else self._stored.get(write.table, write.key)
        larger = max(item_size(write.before), item_size(after))
        table, units = self._stored.table(write.table), write_units(larger) * times
        self._count(self._writes, "table", units)
        self._add(self._written, (write.table, _value(write.key, table.partition)), units)
        if refused:
            return
        for index in table.indexes:
            before, now = index.entry(write.before), index.entry(after)
            units = index_units(before, now, index.own_keys)
            if units:
                self._count(self._writes, index.name, units)
                partition = _value(before or now or {}, index.partition)
                self._add(self._written, (index.name, partition), units)

    def _read_units(
        self, operation: str, params: Any, parsed: Any
    ) -> Iterator[tuple[Partition, float]]:
        """The units of a read, by partition; a scan's under no partition."""
        consistent = params.get("ConsistentRead", False)
        match operation:
            case "GetItem":
                table = params["TableName"]
                partition = _value(params["Key"], self._stored.table(table).partition)
                yield (table, partition), read_units(item_size(parsed.get("Item")), consistent)
            case "BatchGetItem":
                for table, wanted in params["RequestItems"].items():
                    yield from self._batch_units(table, wanted, parsed)
            case "Query" | "Scan":
                size = sum(map(item_size, parsed["Items"]))
                where = params.get("IndexName", params["TableName"])
                yield (where, _queried(params)), read_units(size, consistent)
            case _:
                raise ValueError(f"the meter does not know what {operation} costs")

    def _batch_units(
        self, table: str, wanted: Any, parsed: Any
    ) -> Iterator[tuple[Partition, float]]:
        keys, partition = self._stored.table(table).keys, self._stored.table(table).partition
        consistent = wanted.get("ConsistentRead", False)
        found = {
            _text_of({key: item[key] for key in keys}): item
            for item in parsed["Responses"].get(table, ())
        }
        left = parsed["UnprocessedKeys"].get(table, {}).get("Keys", ())
        for key in wanted["Keys"]:
            if key not in left:
                size = item_size(found.get(_text_of(key)))
                yield (table, _value(key, partition)), read_units(size, consistent)

    def _add(self, counter: defaultdict[Partition, float], to: Partition, units: float) -> None:
        with self._lock:
            counter[to] += units

    def _count(self, counter: defaultdict[Billed, float], what: str, units: float) -> None:
        with self._lock:
            counter[self._label, what] += units


def _value(item: Mapping[str, Any], name: str) -> str:
    """A key's value as text."""
    ((kind, value),) = item[name].items()
    return value.hex() if kind == "B" else str(value)


def _text_of(key: Mapping[str, Any]) -> str:
    return repr(sorted((name, _value(key, name)) for name in key))


def _queried(params: Mapping[str, Any]) -> str:
    found = _FIRST_OF_CONDITION.match(params.get("KeyConditionExpression", ""))
    return _value(params["ExpressionAttributeValues"], found[2]) if found else ""


def _body(message: Mapping[str, Any]) -> int:
    text = message.get("MessageBody", message.get("Body", ""))
    return len(text.encode())
