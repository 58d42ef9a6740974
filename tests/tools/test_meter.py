"""The meter against examples worked by hand: sizes in bytes, then units."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import botocore.session  # type: ignore[import-untyped]
import pytest
from botocore.exceptions import ClientError  # type: ignore[import-untyped]
from moto import mock_aws

from stepwell_engine.adapters.dynamodb.client import connect
from tools.bill.meter import Meter
from tools.bill.meter_sizes import item_size, number_size, value_size

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

REGION = "eu-west-1"
TABLE = "metered"

# Every item here has the key p = one letter: 1 byte of name, 1 of value. Data d is 1 + its length.
KEY = 2


def item(data: int, key: str = "a", **more: Any) -> dict[str, Any]:
    """An item with `data` bytes of data."""
    return {"p": {"S": key}, "d": {"B": bytes(data)}, **more}


class Till:
    """A client of an empty table, and the meter that watches it."""

    def __init__(self, client: "DynamoDBClient") -> None:
        self.client = client
        self.meter = Meter(connect(REGION))

    def put(self, *items: dict[str, Any]) -> None:
        """Store items that nobody pays for."""
        for one in items:
            self.client.put_item(TableName=TABLE, Item=one)

    def update(self, update: str, condition: str = "", **values: dict[str, Any]) -> float:
        """The write units of an update of item a."""
        arguments: dict[str, Any] = {"UpdateExpression": update}
        if condition:
            arguments["ConditionExpression"] = condition
        if values:
            arguments["ExpressionAttributeValues"] = {f":{k}": v for k, v in values.items()}
        self.meter.watch(self.client)
        try:
            self.client.update_item(TableName=TABLE, Key={"p": {"S": "a"}}, **arguments)
        finally:
            self.meter.unwatch(self.client)
        return self.meter.bill().write_units


@pytest.fixture(scope="module")
def client() -> Iterator["DynamoDBClient"]:
    with mock_aws():
        client = connect(REGION)
        client.create_table(
            TableName=TABLE,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
            AttributeDefinitions=[
                {"AttributeName": "p", "AttributeType": "S"},
                {"AttributeName": "g", "AttributeType": "S"},
            ],
            GlobalSecondaryIndexes=[
                {
                    "IndexName": "by-g",
                    "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x"]},
                }
            ],
        )
        yield client


@pytest.fixture
def till(client: "DynamoDBClient") -> Iterator[Till]:
    opened = Till(client)
    yield opened
    opened.meter.unwatch(client)
    for key in "abc":
        client.delete_item(TableName=TABLE, Key={"p": {"S": key}})


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 1),  # no digit, 1
        ("7", 2),  # one digit in 1 byte, 1
        ("42", 2),  # two digits in 1 byte, 1
        ("100", 2),  # one digit without trailing zeros, 1
        ("1800000000123", 8),  # 13 digits in 7 bytes, 1
        ("-42", 3),  # two digits in 1 byte, 1, 1 for the sign
        ("0.00125", 3),  # 3 digits without leading zeros in 2 bytes, 1
    ],
)
def test_a_number_takes_half_a_byte_per_significant_digit(text: str, size: int) -> None:
    assert number_size(text) == size


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": "héllo"}, 6),  # UTF-8
        ({"B": b"\x00" * 5}, 5),
        ({"BOOL": False}, 1),
        ({"NULL": True}, 1),
        ({"L": []}, 3),
        ({"M": {}}, 3),
        ({"L": [{"S": "ab"}, {"N": "7"}]}, 9),  # 3 + (1 + 2) + (1 + 2)
        ({"M": {"ab": {"S": "c"}, "d": {"L": []}}}, 12),  # 3 + (1 + 2 + 1) + (1 + 1 + 3)
        ({"SS": ["ab", "c"]}, 3),
    ],
)
def test_a_value_takes_what_it_holds(value: dict[str, Any], size: int) -> None:
    assert value_size(value) == size


def test_an_item_takes_its_names_and_its_values() -> None:
    assert item_size({"p": {"S": "a"}, "count": {"N": "100"}}) == (1 + 1) + (5 + 2)
    assert item_size(None) == 0


def test_a_value_of_no_known_type_is_refused() -> None:
    with pytest.raises(ValueError, match="no X"):
        value_size({"X": "a"})


# 1. A put of an item up to 1 KiB is one unit; a byte more is two.
@pytest.mark.parametrize(("data", "units"), [(0, 1), (1024 - KEY - 1, 1), (1024 - KEY, 2)])
def test_example_1_a_put_is_rounded_up_to_a_kibibyte(till: Till, data: int, units: int) -> None:
    till.meter.watch(till.client)
    till.put(item(data))
    assert till.meter.bill().write_units == units


# 2. An update is billed by the larger of before and after: 2 + 1 + 3000 = 3003 before, 6 after;
#    3003 / 1024 = 2.9, so 3.
def test_example_2_an_update_that_shrinks_an_item_is_billed_by_what_it_was(till: Till) -> None:
    till.put(item(3000))
    assert till.update("SET d = :d", d={"B": b"abc"}) == 3


# 3. And by the larger after: 2 + 1 + 10 = 13 before, 2 + 1 + 2046 = 2049 after: 3.
def test_example_3_an_update_that_grows_an_item_is_billed_by_what_it_is(till: Till) -> None:
    till.put(item(10))
    assert till.update("SET d = :d", d={"B": bytes(2046)}) == 3


# 4. A delete is billed by what was there: 2 + 1 + 1100 = 1103, so 2; of nothing: 1.
def test_example_4_a_delete_is_billed_by_what_was_there(till: Till) -> None:
    till.put(item(1100))
    till.meter.watch(till.client)
    till.client.delete_item(TableName=TABLE, Key={"p": {"S": "a"}})
    assert till.meter.bill().write_units == 2
    till.client.delete_item(TableName=TABLE, Key={"p": {"S": "a"}})
    assert till.meter.bill().write_units == 2 + 1


# 5. A refused put is billed by the larger of the item there (13: 1) and the one that was to be
#    (2 + 1 + 1500 = 1503: 2), without the index that it would have been in.
def test_example_5_a_refused_put_is_billed(till: Till) -> None:
    till.put(item(10))
    till.meter.watch(till.client)
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        till.client.put_item(
            TableName=TABLE,
            Item=item(1500, g={"S": "x"}),
            ConditionExpression="attribute_not_exists(p)",
        )
    assert till.meter.bill().write_units == 2


# 6. A refused update is billed by the item there: 2 + 1 + 1100 = 1103, so 2.
def test_example_6_a_refused_update_is_billed(till: Till) -> None:
    till.put(item(1100))
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        till.update("SET e = :e", "d = :d", e={"N": "1"}, d={"B": b""})
    assert till.meter.bill().write_units == 2


# 7. A transaction writes every item twice: (13 bytes: 1) x 2 + (2 + 1 + 1100 = 1103: 2) x 2 = 6;
#    its index entry is written once: 1.
def test_example_7_a_transaction_is_billed_twice(till: Till) -> None:
    till.meter.watch(till.client)
    small, large = item(10, "a", g={"S": "x"}), item(1100, "b")
    till.client.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": TABLE, "Item": small}},
            {"Put": {"TableName": TABLE, "Item": large}},
        ]
    )
    assert till.meter.bill().writes == {("", "table"): 6, ("", "by-g"): 1}


# 8. A cancelled one is billed for its items as well: 1 x 2 + 2 x 2 = 6, and no index.
def test_example_8_a_cancelled_transaction_is_billed(till: Till) -> None:
    till.put(item(10, "a"))
    till.meter.watch(till.client)
    condition = {"ConditionExpression": "attribute_not_exists(p)"}
    with pytest.raises(ClientError, match="TransactionCanceled"):
        till.client.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": TABLE, "Item": item(9, g={"S": "x"}), **condition}},  # type: ignore[typeddict-item]
                {"Put": {"TableName": TABLE, "Item": item(1100, "b")}},
            ]
        )
    assert till.meter.bill().write_units == 6


# 9. An index: an entry that comes is a write, one whose key changes is two, one that goes is one;
#    a projected attribute that changes is one, any other none. The table's own unit is beside it.
@pytest.mark.parametrize(
    ("before", "update", "index"),
    [
        ({}, "SET g = :v", 1),
        ({"g": {"S": "old"}}, "SET g = :v", 2),
        ({"g": {"S": "old"}}, "REMOVE g", 1),
        ({"g": {"S": "old"}}, "SET x = :v", 1),
        ({"g": {"S": "old"}, "x": {"S": "old"}}, "REMOVE x", 1),
        ({"g": {"S": "old"}}, "SET e = :v", 0),
        ({"g": {"S": "new"}}, "SET g = :v", 0),
        ({}, "SET x = :v", 0),
    ],
)
def test_example_9_an_index_is_billed_for_what_changes_in_it(
    till: Till, before: dict[str, Any], update: str, index: int
) -> None:
    till.put(item(10, **before))
    values: dict[str, Any] = {"v": {"S": "new"}} if ":v" in update else {}
    assert till.update(update, "", **values) == 1 + index


# 10. An entry is rounded up by its own size: p 2, g 1 + 1, x 1 + 1030 = 1035, so 2; the item is
#     1035 + 1 + 10 = 1046, so 2. When its key changes: 2 for the old one, 2 for the new one.
def test_example_10_an_index_entry_is_billed_by_its_own_size(till: Till) -> None:
    till.meter.watch(till.client)
    till.put(item(10, g={"S": "1"}, x={"B": bytes(1030)}))
    assert till.meter.bill().writes == {("", "table"): 2, ("", "by-g"): 2}
    till.meter.unwatch(till.client)
    assert till.update("SET g = :g", g={"S": "2"}) == (2 + 2) + (2 + 4)


# 11. Reads: 2 + 1 + 4093 = 4096 is one unit, a byte more two, half of it if eventually consistent.
@pytest.mark.parametrize(
    ("data", "consistent", "units"),
    [(4093, True, 1), (4094, True, 2), (4093, False, 0.5), (4094, False, 1)],
)
def test_example_11_a_read_is_rounded_up_to_four_kibibytes(
    till: Till, data: int, consistent: bool, units: float
) -> None:
    till.put(item(data))
    till.meter.watch(till.client)
    till.client.get_item(TableName=TABLE, Key={"p": {"S": "a"}}, ConsistentRead=consistent)
    assert till.meter.bill().read_units == units


def test_a_read_of_nothing_is_billed(till: Till) -> None:
    till.meter.watch(till.client)
    till.client.get_item(TableName=TABLE, Key={"p": {"S": "a"}})
    assert till.meter.bill().read_units == 0.5


# 12. A batch rounds each item up: 4097 bytes 2, 13 bytes 1, a missing one 1: 4, half of it.
def test_example_12_a_batch_is_billed_item_by_item(till: Till) -> None:
    till.put(item(4094, "a"), item(10, "b"))
    till.meter.watch(till.client)
    keys = [{"p": {"S": key}} for key in "abc"]
    till.client.batch_get_item(RequestItems={TABLE: {"Keys": keys}})
    assert till.meter.bill().read_units == 2


# 13. A query rounds the sum up: three entries of p 2, g 1 + 1, x 1 + 2000 = 2005 are 6015: 2,
#     half of it, since an index is eventually consistent.
def test_example_13_a_query_is_billed_by_the_sum(till: Till) -> None:
    for key in "abc":
        till.put(item(5000, key, g={"S": "1"}, x={"B": bytes(2000)}))
    till.meter.watch(till.client)
    till.client.query(
        TableName=TABLE,
        IndexName="by-g",
        KeyConditionExpression="g = :g",
        ExpressionAttributeValues={":g": {"S": "1"}},
    )
    assert till.meter.bill().read_units == 1


def test_calls_that_are_not_watched_are_not_counted(till: Till) -> None:
    till.put(item(10))
    till.meter.watch(till.client)
    till.meter.unwatch(till.client)
    till.put(item(10))
    assert till.meter.bill().write_units == 0


def test_units_stand_under_the_label_they_were_counted_under(till: Till) -> None:
    till.meter.watch(till.client)
    with till.meter.label("start"):
        till.put(item(10, "a"))
        with till.meter.label("page"):
            till.put(item(1100, "b"))
        till.client.get_item(TableName=TABLE, Key={"p": {"S": "a"}}, ConsistentRead=True)
    bill = till.meter.bill()
    assert bill.writes == {("start", "table"): 1, ("page", "table"): 2}
    assert bill.reads == {("start", "GetItem"): 1}


def test_a_call_of_unknown_cost_is_refused(till: Till) -> None:
    till.meter.watch(till.client)
    with pytest.raises(ValueError, match="does not know what DescribeTable costs"):
        till.client.describe_table(TableName=TABLE)


# 14. SQS bills a request for every 64 KiB: 65,536 bytes are one, a byte more two.
@pytest.mark.parametrize(("size", "requests"), [(0, 1), (1, 1), (65_536, 1), (65_537, 2)])
def test_example_14_a_request_to_sqs_is_64_kib(till: Till, size: int, requests: int) -> None:
    sqs = botocore.session.get_session().create_client("sqs", region_name=REGION)
    url = sqs.create_queue(QueueName="q")["QueueUrl"]
    till.meter.watch(sqs)
    entries = [{"Id": "1", "MessageBody": "x" * size}] if size else []
    if entries:
        sqs.send_message_batch(QueueUrl=url, Entries=entries)
    received = sqs.receive_message(QueueUrl=url)
    assert till.meter.bill().sqs_requests == (2 * requests if size else 1)
    for message in received.get("Messages", ()):
        sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        assert till.meter.bill().sqs_requests == 2 * requests + 1


# 15. Lambda: 10 ms at 512 MB are 0.01 s x 0.5 GB = 0.005 GB-seconds.
def test_example_15_an_invocation_is_billed_by_memory_and_time(till: Till) -> None:
    till.meter.invoked(10, 512)
    till.meter.invoked(25, 1024)
    till.meter.sqs(3)
    bill = till.meter.bill()
    assert (bill.lambda_invocations, bill.sqs_requests) == (2, 3)
    assert bill.lambda_gb_seconds == pytest.approx(0.005 + 0.025)
