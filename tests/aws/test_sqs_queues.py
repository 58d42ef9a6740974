"""Queues on SQS: the contract of all queues as far as SQS keeps it, and what is SQS's own."""

import json
from collections.abc import Iterator, Sequence

import pytest

from stepwell_engine.adapters.sqs.queues import SqsQueues
from stepwell_engine.errors import (
    CannotList,
    QueueNameInUse,
    QueueNotFound,
    StoreError,
    TooLong,
    Unavailable,
)
from stepwell_engine.ports import Message
from tests.aws.installation import PREFIX, clients, installed, sqs_backend, waiting
from tests.contract import test_queues as contract
from tests.contract.heads import NOW
from tests.service.world import ManualClock

# Tests of the contract that SQS cannot keep, and why.
CANNOT = {
    "test_a_message_is_received_as_it_was_sent": "SQS carries text; ours are JSON",
    "test_a_message_that_comes_back_keeps_its_place": "a standard queue keeps no order",
    "test_a_removed_message_does_not_come_back": "removing twice succeeds twice",
    "test_a_late_receipt_does_not_remove": "an older receipt may still remove",
    "test_a_message_that_was_not_received_has_no_receipt_to_guess": "receipts are SQS's own",
    "test_peek_lists_in_order_page_by_page_and_receives_nothing": "SQS lists no messages",
}


# All others run here, on the fixture below.
queue = contract.queue
for _name, _test in list(vars(contract).items()):
    if _name.startswith("test_") and _name not in CANNOT:
        globals()[_name] = _test


class TimedQueues(SqsQueues):
    """Sets moto's time to that of each call, and looks into moto where SQS lets nobody look."""

    clock: ManualClock

    def send(
        self, project: str, queue: str, body: bytes, now: int, within: int | None = None
    ) -> str:
        self.clock.at = now
        return super().send(project, queue, body, now, within)

    def receive(self, project: str, queue: str, limit: int, now: int) -> Sequence[Message]:
        self.clock.at = now
        return super().receive(project, queue, limit, now)

    def peek(  # type: ignore[override]
        self, project: str, queue: str, after: int | str | None, limit: int, archived: bool
    ) -> Sequence[Message]:
        name = self._names(project, queue)[archived]
        if name not in sqs_backend().queues:
            raise QueueNotFound(queue)
        return [
            Message(
                one.id, one.body.encode(), one.sent_timestamp, one.approximate_receive_count, "", 0
            )
            for one in waiting(name)
        ]


@pytest.fixture
def queues(clock: ManualClock) -> Iterator[SqsQueues]:
    with installed(clock) as settings:
        made = TimedQueues(clients(), settings.hints_queue_url, PREFIX)
        made.clock = clock
        yield made


@pytest.fixture
def plain(queues: TimedQueues) -> SqsQueues:
    """Without the test's own means."""
    made = SqsQueues(clients(), queues._base + "/any", PREFIX)
    made.create("shop", "orders", 30_000, 3)
    return made


def test_every_reason_is_about_a_test_of_the_contract() -> None:
    assert set(CANNOT) <= set(vars(contract))


def test_a_queue_has_an_archive_and_keeps_messages_for_two_weeks(plain: SqsQueues) -> None:
    made = sqs_backend().queues
    own, archive = made[f"{PREFIX}shop-orders"], made[f"{PREFIX}shop-orders-Archive"]
    assert own.redrive_policy == {
        "deadLetterTargetArn": archive.queue_arn,
        "maxReceiveCount": 3,
    }
    assert own.visibility_timeout == 30
    assert {one.message_retention_period for one in (own, archive)} == {14 * 24 * 3600}


def test_a_message_comes_back_as_the_json_it_was(plain: SqsQueues) -> None:
    body = '{"a":"é\\n\\u0000","b":"\ufffe\uffff𝄞"}'.encode()
    sent = plain.send("shop", "orders", body, NOW)
    (message,) = plain.receive("shop", "orders", 10, NOW)
    assert (message.id, json.loads(message.body)) == (sent, json.loads(body))
    assert "\ufffe" not in waiting(f"{PREFIX}shop-orders")[0].body
    assert (message.receives, message.visible_at) == (1, NOW + 30_000)
    assert plain.delete_message("shop", "orders", message.receipt)
    assert list(plain.receive("shop", "orders", 10, NOW)) == []


def test_messages_cannot_be_listed(plain: SqsQueues) -> None:
    plain.send("shop", "orders", b"1", NOW)
    with pytest.raises(CannotList, match=f"the queue {PREFIX}shop-orders$"):
        plain.peek("shop", "orders", None, 10, False)
    with pytest.raises(CannotList, match=r"the queue stepwell-test-q-shop-orders-Archive$"):
        plain.peek("shop", "orders", None, 10, True)
    with pytest.raises(QueueNotFound):
        plain.peek("shop", "other", None, 10, False)
    (message,) = plain.receive("shop", "orders", 10, NOW)
    assert message.receives == 1


def test_no_two_queues_of_two_projects_share_a_name(plain: SqsQueues) -> None:
    plain.create("shop-orders", "archive", 30_000, 3)
    plain.send("shop-orders", "archive", b"1", NOW)
    assert waiting(f"{PREFIX}shop-orders-Archive") == []


def test_a_name_that_sqs_has_room_for_is_taken_and_one_longer_refused(queues: SqsQueues) -> None:
    room = 80 - len(f"{PREFIX}shop-") - len("-Archive")
    queues.create("shop", "q" * room, 30_000, 3)
    with pytest.raises(TooLong, match="81 characters: at most 80 are allowed, so use a shorter"):
        queues.create("shop", "q" * (room + 1), 30_000, 3)
    with pytest.raises(QueueNotFound):
        queues.send("shop", "q" * (room + 1), b"1", NOW)


def test_an_archive_whose_queue_is_gone_is_deleted_too(plain: SqsQueues) -> None:
    clients().get("sqs", attempts=1).delete_queue(QueueUrl=plain._url(f"{PREFIX}shop-orders"))
    with pytest.raises(QueueNotFound):
        plain.delete("shop", "orders")
    assert not [name for name in sqs_backend().queues if "orders" in name]


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("QueueDeletedRecently", 400, "^a queue of this name was deleted less than"),
        ("RequestThrottled", 403, "SQS: in its words"),
        ("InternalError", 500, "SQS: in its words"),
        ("AccessDenied", 403, "SQS: in its words"),
    ],
)
def test_refusals_of_sqs_in_the_words_of_the_port(
    plain: SqsQueues,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    status: int,
    expected: str,
) -> None:
    client = clients().get("sqs", attempts=1)
    kinds = {"QueueDeletedRecently": QueueNameInUse, "AccessDenied": StoreError}
    error = {"Error": {"Code": code, "Message": "in its words"}}

    def refuse(**_: object) -> None:
        response = {**error, "ResponseMetadata": {"HTTPStatusCode": status}}
        raise client.exceptions.ClientError(response, "SendMessage")

    monkeypatch.setattr(client, "send_message", refuse)
    with pytest.raises(kinds.get(code, Unavailable), match=expected):
        plain.send("shop", "orders", b"1", NOW)
