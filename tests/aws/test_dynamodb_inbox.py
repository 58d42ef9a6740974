"""What only messages in DynamoDB have: places, bodies, keys, and how much an item holds."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from stepwell_engine.adapters.dynamodb.attributes import InboxAttribute
from stepwell_engine.adapters.dynamodb.client import DynamoDB, Item, Rejected, TooLarge
from stepwell_engine.adapters.dynamodb.heads import key_of, to_item
from stepwell_engine.adapters.dynamodb.runs import DynamoRuns
from stepwell_engine.adapters.memory.hints import MemoryDispatcher
from stepwell_engine.adapters.process.system import RandomIds, SystemClock
from stepwell_engine.core.run.child import ChildResult, message_of
from stepwell_engine.core.run.head import Blob
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind
from stepwell_engine.core.run.status import Status
from stepwell_engine.errors import Problem
from stepwell_engine.limits import (
    INLINE_INPUT,
    INLINE_MESSAGE,
    KIB,
    MAX_ERROR_TEXT,
    MAX_PENDING_SIGNALS,
    OPEN_ERRORS,
    PAGE_ABOVE,
)
from stepwell_engine.ports import Delivered, Refused
from stepwell_engine.service.projects.definitions import Workflows
from stepwell_engine.service.runs.controls import Controls
from tests.api.home import MarkedSecrets
from tests.aws.overtaken import Overtaken
from tests.aws.small_inboxes import small_inboxes
from tests.contract.heads import COMMIT, NOW, RUN, a_head, held, put, some_message
from tests.contract.inboxes import pending
from tools.bill.meter_sizes import item_size
from tools.moto_home import RUNS, DynamoHome, client

ITEM = 400 * KIB  # the most that DynamoDB keeps in one
IN_BLOB = InboxMessage(MessageKind.SIGNAL, "paid", NOW, None, "m.1")


@pytest.fixture
def home() -> Iterator[DynamoHome]:
    opened = DynamoHome()
    yield opened
    opened.close()


class Full(DynamoDB):
    """Items have no room for anything more."""

    def __init__(self) -> None:
        super().__init__(client(), SystemClock())

    def update(self, table: str, key: Item, **arguments: Any) -> Item | Rejected:
        raise TooLarge("Item size to update has exceeded the maximum allowed size")


class Preceded(DynamoDB):
    """Others write before the first item is put."""

    def __init__(self, other: Callable[[], object]) -> None:
        super().__init__(client(), SystemClock())
        self._other: Callable[[], object] | None = other

    def put(
        self,
        table: str,
        item: Item,
        condition: str | None = None,
        values: Mapping[str, Any] | None = None,
        *,
        patient: bool = True,
    ) -> Rejected | None:
        other, self._other = self._other, None
        if other is not None:
            other()
        return super().put(table, item, condition, values, patient=patient)


# --- places -----------------------------------------------------------------------------------


def test_messages_are_read_in_the_order_of_their_arrival_whatever_the_clocks_said(
    home: DynamoHome,
) -> None:
    put(home.runs, held(inbox={"first": some_message(), "b": some_message()}))
    for message_id, at in (("z", 9), ("a", 3), ("m", 2)):
        home.runs.deliver(
            RUN, message_id, InboxMessage(MessageKind.SIGNAL, "paid", at, b"1"), NOW, None
        )
    home.runs.commit(replace(COMMIT, consumed=("b",)))
    for key, message_id in (("k", "keyed"), (None, "b")):
        home.runs.deliver(
            RUN, message_id, InboxMessage(MessageKind.SIGNAL, "paid", 1, b"1"), NOW, None, key
        )
    assert pending(home.runs, home.runs.get(RUN)) == ["first", "z", "a", "m", "keyed", "b"]


def test_messages_without_a_place_come_first_by_their_time() -> None:
    stored = InboxAttribute().serialize({"new": InboxMessage(MessageKind.SIGNAL, "paid", 1, b"1")})
    for message_id, at in (("z", 5), ("c", 7), ("b", 7)):
        stored[message_id] = InboxAttribute.message(
            InboxMessage(MessageKind.SIGNAL, "paid", at, b"1")
        )
    assert list(InboxAttribute().deserialize(stored)) == ["z", "b", "c", "new"]


def test_a_consumed_message_leaves_nothing(home: DynamoHome) -> None:
    put(home.runs, held())
    home.runs.deliver(RUN, "m", some_message(), NOW, None)
    home.runs.commit(replace(COMMIT, consumed=("m",)))
    stored = client().get_item(TableName=RUNS, Key=key_of(RUN))["Item"]
    assert stored["m"] == {"M": {}}


# --- bodies -----------------------------------------------------------------------------------


def test_the_body_of_a_message_is_never_overwritten(home: DynamoHome) -> None:
    """Not by a repeat, nor after it was consumed, when a step's output refers to the body."""
    put(home.runs, held())
    first = home.runs.deliver(RUN, "1", IN_BLOB, NOW, Blob("m.1", b"first"))
    assert isinstance(first, Delivered)
    again = home.runs.deliver(RUN, "1", IN_BLOB, NOW, Blob("m.1", b"second"))
    assert again == Delivered(first.head, NOW)
    home.runs.commit(replace(COMMIT, consumed=("1",)))
    third = home.runs.deliver(RUN, "1", IN_BLOB, NOW, Blob("m.1", b"third"))
    assert isinstance(third, Delivered)
    assert home.runs.blob(RUN, "m.1") == b"first"


@pytest.mark.parametrize("key", [None, "k"])
def test_a_refused_delivery_leaves_no_body(home: DynamoHome, key: str | None) -> None:
    put(home.runs, a_head(status=Status.FAILED))
    written = home.runs.deliver(RUN, "1", IN_BLOB, NOW, Blob("m.1", b"x"), key)
    assert isinstance(written, Refused)
    assert home.runs.blob(RUN, "m.1") is None


def test_a_signal_to_a_full_inbox_leaves_no_body_and_the_end_of_a_child_does(
    home: DynamoHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = {str(number): some_message() for number in range(small_inboxes(monkeypatch))}
    put(home.runs, a_head(inbox=messages))
    body = Blob("m.1", b"x")
    assert isinstance(home.runs.deliver(RUN, "m", IN_BLOB, NOW, body), Refused)
    assert home.runs.blob(RUN, "m.1") is None
    child = replace(IN_BLOB, kind=MessageKind.CHILD)
    assert isinstance(home.runs.deliver(RUN, "m", child, NOW, body), Delivered)
    assert home.runs.blob(RUN, "m.1") == b"x"


# --- keys -------------------------------------------------------------------------------------


def test_of_two_deliveries_with_one_key_the_later_finds_the_earlier(home: DynamoHome) -> None:
    put(home.runs, a_head())
    body = Blob("m.1", b"x")
    database = Preceded(lambda: home.runs.deliver(RUN, "first", some_message(), NOW, None, "k"))
    later = replace(IN_BLOB, at=NOW + 7)
    written = DynamoRuns(database, RUNS).deliver(RUN, "later", later, NOW + 7, body, "k")
    assert written == Delivered(home.runs.get(RUN), NOW)
    assert pending(home.runs, written.head) == ["first"]


@pytest.mark.parametrize("first", [False, True])
def test_a_key_that_was_delivered_meanwhile_to_a_run_that_then_ended_is_found(
    home: DynamoHome, first: bool
) -> None:
    """Delivered by another before the slot was filled, or finished by it before it counted."""
    put(home.runs, a_head())

    def deliver_and_end() -> None:
        home.runs.deliver(RUN, "m", some_message(), NOW, None, "k")
        home.runs.cancel(RUN, NOW)

    runs = DynamoRuns((Preceded if first else Overtaken)(deliver_and_end), RUNS)
    written = runs.deliver(RUN, "m", replace(some_message(), at=NOW + 7), NOW + 7, None, "k")
    assert written == Delivered(home.runs.get(RUN), NOW if first else NOW + 7)
    assert pending(home.runs, written.head) == ["m"]


def test_a_key_whose_first_delivery_was_refused_brings_its_later_payload(
    home: DynamoHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = small_inboxes(monkeypatch) - 1
    put(home.runs, held(inbox={str(number): some_message() for number in range(most)}))
    clock = SystemClock()

    def send(runs: DynamoRuns, payload: bytes) -> None:
        versions = Workflows(home.versions, MarkedSecrets(), clock)
        controls = Controls(runs, versions, MemoryDispatcher(clock), clock, RandomIds(clock))
        controls.signal("shop", "order", RUN, "paid", payload, "k")

    def fill() -> None:
        home.runs.deliver(RUN, "last", some_message(), NOW, None)

    with pytest.raises(Problem, match="too_many_signals"):
        send(DynamoRuns(Preceded(fill), RUNS), b"1" * INLINE_MESSAGE + b"1")
    home.runs.commit(replace(COMMIT, consumed=("7",)))
    later = b"2" * INLINE_MESSAGE + b"2"
    send(home.runs, later)
    head = home.runs.get(RUN)
    assert head is not None
    message = home.runs.overflow(RUN, head.overflow_last, head.overflow_last)[2].message
    assert message.blob is not None
    assert home.runs.blob(RUN, message.blob) == later


def test_a_run_that_ends_meanwhile_refuses_a_message_and_its_key(home: DynamoHome) -> None:
    put(home.runs, a_head())
    runs = DynamoRuns(Overtaken(lambda: home.runs.cancel(RUN, NOW)), RUNS)
    refused = runs.deliver(RUN, "m", some_message(), NOW, None, "k")
    head = home.runs.get(RUN)
    assert refused == Refused(head)
    assert home.runs.deliver(RUN, "m", some_message(), NOW, None, "k") == Refused(head)
    assert pending(home.runs, head) == []


@pytest.mark.parametrize("waits", [True, False])
def test_a_signal_goes_into_a_head_that_stays_within_one_write_unit(
    home: DynamoHome, waits: bool
) -> None:
    """One that the run does not wait for leaves room for a journal that grows until it does."""
    sizes = {}
    for body in range(0, 1_000, 7):
        run_id = f"01890000-0000-7000-8000-{body:012}"
        put(home.runs, a_head(run_id, commit_seq=9, wants="paid" if waits else "", wants_seq=9))
        signal = InboxMessage(MessageKind.SIGNAL, "paid", NOW, bytes(body))
        written = home.runs.deliver(run_id, run_id, signal, NOW, None)
        assert isinstance(written, Delivered)
        assert written.head is not None
        if written.head.inbox:
            sizes[body] = item_size(to_item(written.head, 16))
    assert list(sizes) == list(range(0, max(sizes) + 1, 7)), "what is larger goes beside it"
    grown = 0 if waits else PAGE_ABOVE
    assert KIB - 90 < max(sizes.values()) + grown <= KIB


def test_an_older_version_takes_no_key_for_delivered_whose_number_may_not_count(
    home: DynamoHome,
) -> None:
    """It answered with attribute c of a key that it found, whatever else there was."""
    put(home.runs, a_head())
    home.runs.deliver(RUN, "m", some_message(), NOW, None, "k")
    stored = client().get_item(TableName=RUNS, Key=key_of(RUN, "s#k"))["Item"]
    assert "c" not in stored
    assert (stored["n"], stored["a"]) == ({"N": "1"}, {"N": str(NOW)})


# --- room -------------------------------------------------------------------------------------


def test_the_end_of_a_child_that_an_item_has_no_room_for_is_not_refused(home: DynamoHome) -> None:
    """Its parent would never hear of it: that would pass for an end that nobody waits for."""
    put(home.runs, a_head())
    with pytest.raises(TooLarge):
        DynamoRuns(Full(), RUNS).deliver(
            RUN, "m", InboxMessage(MessageKind.CHILD, "failed", NOW), NOW, None
        )


def test_the_largest_signals_leave_room_for_the_end_of_a_child() -> None:
    """An older version kept all signals in the head."""
    ids = (f"01890000-0000-7000-8000-{number:012}" for number in range(MAX_PENDING_SIGNALS + 1))
    signal = InboxMessage(MessageKind.SIGNAL, "x" * 64, NOW, bytes(INLINE_MESSAGE))
    worst = ChildResult(Status.FAILED, NOW, "\x01" * MAX_ERROR_TEXT, "child_failed")
    child, _ = message_of(worst)
    head = held(
        project="p" * 63,
        workflow="w" * 63,
        journal=bytes(2 * OPEN_ERRORS),
        input=bytes(INLINE_INPUT),
        idempotency_key="ä" * 200,
        overflow_last=10**9,
        overflow_count=MAX_PENDING_SIGNALS,
        wants="x" * 64,
        wants_seq=10**9,
        inbox=dict(zip(ids, [child] + [signal] * MAX_PENDING_SIGNALS, strict=True)),
    )
    assert item_size(to_item(head, 16)) <= ITEM
