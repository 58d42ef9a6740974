"""What is tried again, for how long, and in which words a failure is told."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from botocore.exceptions import (  # type: ignore[import-untyped]
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
)
from botocore.parsers import ResponseParserError  # type: ignore[import-untyped]

from stepwell_engine.adapters.dynamodb.client import (
    LONGEST_PAUSE,
    PATIENCE,
    DynamoDB,
    Rejected,
    TooLarge,
    connect,
)
from stepwell_engine.errors import StoreError, Unavailable
from stepwell_engine.limits import CLOCK_MARGIN, LEASE, SECOND
from stepwell_engine.service.retry_unavailable import retry_unavailable

KEY = {"r": {"S": "a"}}
URL = "https://dynamodb.eu-west-1.amazonaws.com"


class Clock:
    def __init__(self) -> None:
        self.pauses: list[int] = []

    def now(self) -> int:
        return sum(self.pauses)

    def sleep(self, ms: int) -> None:
        self.pauses.append(ms)


class Script:
    """A client whose every call gives the next of some answers; the last one stays."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.calls: list[dict[str, Any]] = []

    def _next(self, arguments: dict[str, Any]) -> Any:
        self.calls.append(arguments)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def get_item(self, **arguments: Any) -> Any:
        return self._next(arguments)

    def batch_get_item(self, **arguments: Any) -> Any:
        return self._next(arguments)

    def put_item(self, **arguments: Any) -> Any:
        return self._next(arguments)

    def update_item(self, **arguments: Any) -> Any:
        return self._next(arguments)

    def transact_write_items(self, **arguments: Any) -> Any:
        return self._next(arguments)


def failed(code: str, status: int = 400, message: str = "no", **more: Any) -> ClientError:
    return ClientError(
        {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {"HTTPStatusCode": status},
            **more,
        },
        "UpdateItem",
    )


def cancelled(*codes: str, **items: Any) -> ClientError:
    """A transaction cancelled for these reasons; items by the place of theirs: i0, i1."""
    reasons = [
        {"Code": code, **({"Item": items[f"i{place}"]} if f"i{place}" in items else {})}
        for place, code in enumerate(codes)
    ]
    return failed("TransactionCanceledException", CancellationReasons=reasons)


def over(script: Script, jitter: float = 1.0) -> tuple[DynamoDB, Clock]:
    clock = Clock()
    return DynamoDB(cast(Any, script), clock, lambda: jitter), clock


def update(database: DynamoDB) -> object:
    return database.update("t", KEY, UpdateExpression="SET a = :a", ConditionExpression="b = :b")


CALLS: dict[str, Callable[[DynamoDB], object]] = {
    "get": lambda database: database.get("t", KEY),
    "put": lambda database: database.put("t", KEY),
    "put if": lambda database: database.put("t", KEY, "c"),
    "update": update,
    "transact": lambda database: database.transact("token", [KEY]),
    "get all": lambda database: list(database.get_all("t", [KEY])),
}
PASSING = [
    "TransactionConflictException",
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "RequestLimitExceeded",
    "TransactionInProgressException",
]
DONE = {"Attributes": KEY, "Item": KEY, "Responses": {"t": [KEY]}, "UnprocessedKeys": {}}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("code", PASSING)
def test_conflicts_and_throttling_are_tried_again(name: str, code: str) -> None:
    script = Script(failed(code), failed(code), DONE)
    database, clock = over(script)
    CALLS[name](database)
    assert len(script.calls) == 3
    assert script.calls[0] == script.calls[2]
    assert clock.pauses == [25, 50]


@pytest.mark.parametrize("name", CALLS)
def test_for_a_bounded_time_and_with_pauses_that_grow_to_a_bound(name: str) -> None:
    database, clock = over(Script(failed("ThrottlingException")))
    with pytest.raises(Unavailable, match="throttling or conflicts"):
        CALLS[name](database)
    assert PATIENCE - LONGEST_PAUSE < sum(clock.pauses) <= PATIENCE
    assert clock.pauses[:7] == [25, 50, 100, 200, 400, 800, 800]


def test_a_pause_is_a_random_part_of_the_longest_and_never_none() -> None:
    for jitter, pauses in ((0.5, [12, 25]), (0.0, [1, 1])):
        database, clock = over(Script(failed(PASSING[0]), failed(PASSING[0]), DONE), jitter)
        update(database)
        assert clock.pauses == pauses


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    "error",
    [
        ReadTimeoutError(endpoint_url=URL),
        ConnectTimeoutError(endpoint_url=URL),
        EndpointConnectionError(endpoint_url=URL),
        ConnectionClosedError(endpoint_url=URL),
        ResponseParserError("no XML, no JSON"),
        failed("InternalServerError", 500),
        failed("ServiceUnavailable", 503),
    ],
)
def test_what_may_have_happened_is_unavailable_at_once(name: str, error: Exception) -> None:
    script = Script(error)
    database, clock = over(script)
    with pytest.raises(Unavailable):
        CALLS[name](database)
    assert (len(script.calls), clock.pauses) == (1, [])


@pytest.mark.parametrize("name", CALLS)
def test_a_defect_is_told_as_such(name: str) -> None:
    script = Script(failed("AccessDeniedException", message="not allowed"))
    database, _ = over(script)
    with pytest.raises(StoreError, match="not allowed") as caught:
        CALLS[name](database)
    assert not isinstance(caught.value, Unavailable)
    assert len(script.calls) == 1


def test_an_item_that_would_be_too_large_is_told_apart() -> None:
    for text in ("Item size has", "Item size to update has"):
        message = f"{text} exceeded the maximum allowed size"
        database, _ = over(Script(failed("ValidationException", message=message)))
        with pytest.raises(TooLarge):
            update(database)


def test_so_is_one_of_a_transaction() -> None:
    told = "Item size to update has exceeded the maximum allowed size"
    reasons = [{"Code": "ValidationError", "Message": told}, {"Code": "None"}]
    error = failed("TransactionCanceledException", CancellationReasons=reasons)
    database, clock = over(Script(error))
    with pytest.raises(TooLarge, match="exceeded the maximum"):
        database.transact("token", [KEY, KEY])
    assert clock.pauses == []


def test_a_refused_condition_gives_what_is_stored() -> None:
    database, clock = over(Script(failed("ConditionalCheckFailedException", Item=KEY)))
    assert update(database) == Rejected(KEY)
    assert database.put("t", KEY, "c") == Rejected(KEY)
    database, clock = over(Script(failed("ConditionalCheckFailedException")))
    assert update(database) == Rejected(None)
    assert clock.pauses == []


def test_a_refused_condition_after_a_conflict_is_an_answer() -> None:
    script = Script(failed(PASSING[0]), failed("ConditionalCheckFailedException", Item=KEY))
    assert update(over(script)[0]) == Rejected(KEY)


@pytest.mark.parametrize(
    "codes",
    [
        ("TransactionConflict", "None"),
        ("None", "ThrottlingError"),
        ("TransactionConflict", "ProvisionedThroughputExceeded"),
    ],
)
def test_a_transaction_that_met_only_conflicts_is_tried_again_as_the_same(
    codes: Sequence[str],
) -> None:
    script = Script(cancelled(*codes), DONE)
    database, clock = over(script)
    assert not database.transact("token", [KEY, KEY])
    assert [call["ClientRequestToken"] for call in script.calls] == ["token", "token"]
    assert clock.pauses == [25]


def test_the_reasons_of_a_transaction_are_told_apart_in_the_order_of_its_items() -> None:
    other = {"r": {"S": "b"}}
    script = Script(cancelled("ConditionalCheckFailed", "None", "TransactionConflict", i0=KEY))
    assert over(script)[0].transact("t", [KEY] * 3) == [Rejected(KEY), None, None]
    script = Script(cancelled("None", "ConditionalCheckFailed", i1=other))
    assert over(script)[0].transact("t", [KEY] * 2) == [None, Rejected(other)]
    script = Script(cancelled("ConditionalCheckFailed", "ConditionalCheckFailed", i1=other))
    assert over(script)[0].transact("t", [KEY] * 2) == [Rejected(None), Rejected(other)]


def test_a_transaction_cancelled_for_a_defect_is_told_as_such() -> None:
    script = Script(cancelled("TransactionConflict", "ValidationError"))
    with pytest.raises(StoreError) as caught:
        over(script)[0].transact("t", [KEY, KEY])
    assert not isinstance(caught.value, Unavailable)
    assert len(script.calls) == 1


def test_keys_that_a_batch_left_over_are_asked_for_again() -> None:
    left = {"t": {"Keys": [KEY]}}
    first = {"Responses": {"t": [{"n": {"N": "1"}}]}, "UnprocessedKeys": left}
    script = Script(first, {"Responses": {}, "UnprocessedKeys": left}, DONE)
    database, clock = over(script)
    assert list(database.get_all("t", [KEY, KEY])) == [{"n": {"N": "1"}}, KEY]
    assert [call["RequestItems"] for call in script.calls[1:]] == [left, left]
    assert clock.pauses == [25, 50]


def test_a_batch_that_stays_unfinished_is_unavailable() -> None:
    script = Script({"Responses": {}, "UnprocessedKeys": {"t": {"Keys": [KEY]}}})
    with pytest.raises(Unavailable):
        list(over(script)[0].get_all("t", [KEY]))


@pytest.mark.parametrize(("count", "calls"), [(0, 0), (1, 1), (100, 1), (101, 2)])
def test_a_batch_asks_for_a_hundred_keys_at_most(count: int, calls: int) -> None:
    script = Script({"Responses": {}, "UnprocessedKeys": {}})
    keys = [{"r": {"N": str(number)}} for number in range(count)]
    list(over(script)[0].get_all("t", keys))
    asked = [call["RequestItems"]["t"]["Keys"] for call in script.calls]
    assert len(asked) == calls
    assert [key for keys in asked for key in keys] == keys


def test_the_client_repeats_nothing_by_itself_and_gives_up_in_time() -> None:
    config = connect("eu-west-1").meta.config
    assert config.retries == {"mode": "standard", "total_max_attempts": 1}
    assert (config.connect_timeout, config.read_timeout) == (2, 5)


class Hanging(Script):
    """A client whose every call fails: throttled, or without an answer for as long as it waits."""

    def __init__(self, clock: Clock, throttled: Callable[[], bool]) -> None:
        super().__init__(None)
        self._clock = clock
        self._throttled = throttled

    def _next(self, arguments: dict[str, Any]) -> Any:
        if self._throttled():
            raise failed("ThrottlingException")
        config = connect("eu-west-1").meta.config
        self._clock.sleep(SECOND * (config.connect_timeout + config.read_timeout))
        raise ReadTimeoutError(endpoint_url=URL)


@pytest.mark.parametrize(
    "throttled",
    [lambda _: True, lambda _: False, lambda now: now % 12_000 < PATIENCE - 1_000],
    ids=["throttled", "silent", "first the one and then the other"],
)
def test_a_worker_that_tries_a_call_again_and_again_knows_its_end_within_the_lease(
    throttled: Callable[[int], bool],
) -> None:
    clock = Clock()
    database = DynamoDB(
        cast(Any, Hanging(clock, lambda: throttled(clock.now()))), clock, lambda: 1.0
    )
    with pytest.raises(Unavailable):
        retry_unavailable(clock, lambda: update(database))
    assert clock.now() < LEASE - CLOCK_MARGIN
