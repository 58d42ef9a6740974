"""Calls to DynamoDB: one client, what may be tried again, and errors in the words of the port.

A refused condition is an answer, not an error. What certainly did not happen (a conflict of two
transactions, throttling) is tried again here, with jitter and within a bounded time. Whatever may
have happened is Unavailable at once: only the caller knows whether a repeat is safe.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import botocore.session  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import (  # type: ignore[import-untyped]
    ClientError,
    ConnectionError,  # noqa: A004  botocore's, of no common base with Python's
    HTTPClientError,
    IncompleteReadError,
)
from botocore.parsers import ResponseParserError  # type: ignore[import-untyped]

from stepwell_engine.adapters.aws_clients import CONNECTIONS, TIMEOUT, take_timeouts
from stepwell_engine.errors import StoreError, Unavailable, Unstorable
from stepwell_engine.limits import SECOND
from stepwell_engine.ports import Clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Item = Mapping[str, Any]

CONNECT_SECONDS: Final = 2
READ_SECONDS: Final = 5
PATIENCE: Final = 5 * SECOND  # for conflicts and throttling; well within a lease
FIRST_PAUSE: Final = 25  # ms, at most; doubled each time
LONGEST_PAUSE: Final = 800  # ms, at most
BATCH: Final = 100  # keys of one BatchGetItem

_LOST: Final = (HTTPClientError, ConnectionError, IncompleteReadError, ResponseParserError)
_SERVER_ERROR: Final = 500
_SILENT: Final = "DynamoDB does not answer"
_REASONS: Final = {
    "AccessDeniedException": "DynamoDB denies access",
    "ResourceNotFoundException": "a DynamoDB table is missing",
}
_TOO_LARGE: Final = "has exceeded the maximum allowed size"  # no code of its own tells
# Nothing was written, and the same call may succeed a moment later. The last line of each are
# reasons for which a transaction was cancelled.
_THROTTLED: Final = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingException",
        *("ProvisionedThroughputExceeded", "ThrottlingError"),
    }
)
_PASSING: Final = _THROTTLED | frozenset(
    {"TransactionConflictException", "TransactionInProgressException", "TransactionConflict"}
)


class TooLarge(Unstorable):
    """An item would grow beyond what DynamoDB keeps in one: 400 KB."""


class Throttled(Unavailable):
    """Nothing was written: a partition, a table or an account has too much to do."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A condition did not hold. `item` is what is stored, None if there is nothing."""

    item: Item | None


def connect(
    region: str | None = None, endpoint: str | None = None, session: Any = None
) -> "DynamoDBClient":
    """A client that several threads may share.

    It repeats nothing by itself: a blind repeat of a cancel whose answer was lost would answer
    "finished already", and one of a signal could deliver it twice. `region` None is that of the
    environment; `endpoint` is for stores that speak DynamoDB's protocol elsewhere; `session` is
    one of botocore's that other clients were made from, or will be.
    """
    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": 1},
        max_pool_connections=CONNECTIONS,
        tcp_keepalive=True,
    )
    session = session or botocore.session.get_session()
    client: DynamoDBClient = session.create_client(
        "dynamodb", region_name=region, endpoint_url=endpoint, config=config
    )
    take_timeouts(client)
    return client


class DynamoDB:
    """A client together with the rules of this module."""

    def __init__(
        self,
        client: "DynamoDBClient",
        clock: Clock,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`jitter` draws from 0 to 1: which part of the longest pause is taken."""
        self._client = client
        self.clock = clock
        self._jitter = jitter

    def get(
        self, table: str, key: Item, consistent: bool = True, ends: float | None = None
    ) -> Item | None:
        """One item, or None. Unavailable at `ends`, monotonic time in s."""
        answer = self._call(
            self._client.get_item, ends, TableName=table, Key=key, ConsistentRead=consistent
        )
        found: Item | None = answer.get("Item")
        return found

    def get_all(self, table: str, keys: Sequence[Item], consistent: bool = True) -> Iterator[Item]:
        """The items that exist, in any order. The keys must differ."""
        for first in range(0, len(keys), BATCH):
            some = keys[first : first + BATCH]
            left: dict[str, Any] = {table: {"Keys": some, "ConsistentRead": consistent}}
            pauses = self.pauses("BatchGetItem")
            while left:
                answer = self._call(self._client.batch_get_item, RequestItems=left)
                yield from answer["Responses"].get(table, ())
                left = answer["UnprocessedKeys"]
                if left:
                    next(pauses)

    def query(self, table: str, **arguments: Any) -> tuple[Sequence[Item], Item | None]:
        """One page of items, and where the next one begins."""
        answer = self._call(self._client.query, TableName=table, **arguments)
        return answer["Items"], answer.get("LastEvaluatedKey")

    def put(
        self,
        table: str,
        item: Item,
        condition: str | None = None,
        values: Mapping[str, Any] | None = None,
        *,
        patient: bool = True,
    ) -> Rejected | None:
        """Put an item; Rejected if the condition does not hold.

        Throttled, at once, if not `patient`: who calls has another way.
        """
        if condition is None:
            self._call(self._client.put_item, TableName=table, Item=item)
            return None
        answer = self._write(
            self._client.put_item,
            patient,
            TableName=table,
            Item=item,
            ConditionExpression=condition,
            **({"ExpressionAttributeValues": values} if values else {}),
        )
        return answer if isinstance(answer, Rejected) else None

    def delete(self, table: str, key: Item, condition: str) -> Rejected | None:
        """Delete an item; Rejected if the condition does not hold."""
        answer = self._write(
            self._client.delete_item, TableName=table, Key=key, ConditionExpression=condition
        )
        return answer if isinstance(answer, Rejected) else None

    def update(self, table: str, key: Item, **arguments: Any) -> Item | Rejected:
        """The item after a conditional update, or Rejected. TooLarge."""
        answer = self._write(
            self._client.update_item,
            TableName=table,
            Key=key,
            ReturnValues="ALL_NEW",
            **arguments,
        )
        if isinstance(answer, Rejected):
            return answer
        after: Item = answer["Attributes"]
        return after

    def transact(
        self, token: str, items: Sequence[Item], *, patient: bool = True
    ) -> Sequence[Rejected | None]:
        """Write all of `items`, or none.

        Empty if they were written; else which of them were rejected, in their order. `token` (at
        most 36 characters) is the same in every try, and no other transaction's. TooLarge.
        Throttled, at once, if not `patient`.
        """
        pauses = self.pauses("TransactWriteItems")
        while True:
            try:
                self._send(
                    self._client.transact_write_items, TransactItems=items, ClientRequestToken=token
                )
            except ClientError as error:
                reasons = error.response.get("CancellationReasons", ())
                codes = {reason["Code"] for reason in reasons} - {"None"}
                if "ConditionalCheckFailed" in codes:
                    return [_rejected(reason) for reason in reasons]
                if any(_TOO_LARGE in reason.get("Message", "") for reason in reasons):
                    raise TooLarge(str(reasons)) from error
                codes = codes or {_code(error)}
                if not codes <= _PASSING:
                    raise _translated(error) from error
                if codes & _THROTTLED and not patient:
                    raise Throttled(f"DynamoDB throttles: {error}") from error
                next(pauses)
            else:
                return ()

    def _write(self, operation: Callable[..., Any], patient: bool = True, **arguments: Any) -> Any:
        """The answer of a conditional write, or Rejected."""
        arguments["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        try:
            return self._call(operation, patient=patient, **arguments)
        except _ConditionFailed as refused:
            return Rejected(refused.item)

    def _call(
        self,
        operation: Callable[..., Any],
        ends: float | None = None,
        patient: bool = True,
        **arguments: Any,
    ) -> Any:
        """The answer of a call that is made again while it meets conflicts or throttling."""
        pauses = self.pauses(operation.__name__)
        while True:
            try:
                return self._send(operation, **arguments, **_bounded(ends))
            except ClientError as error:
                if _code(error) not in _PASSING:
                    raise _translated(error) from error
                if _code(error) in _THROTTLED and not patient:
                    raise Throttled(f"DynamoDB throttles: {error}") from error
            next(pauses)

    def _send(self, operation: Callable[..., Any], **arguments: Any) -> Any:
        try:
            return operation(**arguments)
        except _LOST as error:
            text = f"DynamoDB did not answer: {error}"
            raise Unavailable(text, _SILENT) from error

    def pauses(self, what: str) -> Iterator[None]:
        """Pause at every `next`; Unavailable when there was no success for PATIENCE."""
        ends = self.clock.now() + PATIENCE
        longest = FIRST_PAUSE
        while True:
            pause = max(1, round(longest * self._jitter()))
            if self.clock.now() + pause > ends:
                text = f"DynamoDB refused {what} for {PATIENCE} ms: throttling or conflicts"
                raise Unavailable(text, "DynamoDB is throttled or meets conflicts")
            self.clock.sleep(pause)
            yield
            longest = min(longest * 2, LONGEST_PAUSE)


class _ConditionFailed(Exception):
    def __init__(self, item: Item | None) -> None:
        super().__init__()
        self.item = item


def _bounded(ends: float | None) -> dict[str, float]:
    """The argument that bounds a call, if there is a bound. Unavailable if it has passed."""
    if ends is None:
        return {}
    left = ends - time.monotonic()
    if left <= 0:
        raise Unavailable("DynamoDB did not answer in the time there was")
    return {TIMEOUT: min(left, READ_SECONDS)}


def _code(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])


def _translated(error: ClientError) -> Exception:
    code = _code(error)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code == "ConditionalCheckFailedException":
        return _ConditionFailed(error.response.get("Item"))
    if status >= _SERVER_ERROR:
        return Unavailable(f"DynamoDB did not answer: {error}", _SILENT)
    if _TOO_LARGE in str(error):
        return TooLarge(str(error))
    if code == "ValidationException":
        return Unstorable(str(error))
    return StoreError(str(error), _REASONS.get(code, f"DynamoDB answers {code}"))


def _rejected(reason: Item) -> Rejected | None:
    if reason["Code"] != "ConditionalCheckFailed":
        return None
    return Rejected(reason.get("Item"))
