"""What is stored: today's items are those of the golden files, and those are read.

A change that breaks this breaks the installations of people who upgrade: it needs a new format.
"""

import base64
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from stepwell_engine.adapters.dynamodb import blobs as dynamodb_blobs
from stepwell_engine.adapters.dynamodb.client import DynamoDB
from stepwell_engine.adapters.dynamodb.models import ControlItem, HeadItem, definition
from stepwell_engine.adapters.dynamodb.runs import DynamoRuns
from stepwell_engine.adapters.process.system import SystemClock
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind, Slot
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.journal_codec import JournalCodec
from stepwell_engine.core.run.keys import StepKeys
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.limits import RUN_FORMAT
from stepwell_engine.ports import (
    Commit,
    Delivered,
    Done,
    Due,
    Grant,
    Project,
    Published,
    Resource,
)
from tests.aws.partitions import FullList
from tools.moto_home import CONTROL, RUNS, SHARDS, DynamoHome, client

GOLDEN = Path(__file__).parents[1] / "golden" / "aws"
AT = 1_800_000_000_000
TOKEN = "aaaaaaaaaaaa"


def run_id(number: int) -> str:
    return f"01890000-0000-7000-8000-{number:012}"


KEYS = StepKeys({0: "charge"})
CODEC = JournalCodec(AT, KEYS)
RECORD = Record("charge", StepStatus.SUCCEEDED, 1, AT + 1, AT + 5, b'{"ok":true}')
FRESH = Head(run_id(1), "shop", "order", 3, AT, wake_at=AT + 60_000, input=b"{}")
IN_A_LANE = replace(FRESH, format=2)
HELD = Head(
    run_id(2),
    "shop",
    "order",
    3,
    AT,
    wake_at=AT + 60_000,
    lease_token=TOKEN,
    lease_expires_at=AT + 60_001,
    claimed_at=AT + 1,
    commit_seq=1,
    lost_leases=2,
    journal=CODEC.encode(Journal(position=1, attempts=1, records=(RECORD,))),
    input=b'{"order":17}',
    idempotency_key="order-17",
    test=True,
)
WAITING = Head(
    run_id(3),
    "shop",
    "order",
    3,
    AT,
    Status.WAITING,
    ready_at=AT + 100,
    wake_at=AT + 100,
    inbox_seq=2,
    commit_seq=4,
    inbox={
        "m1": InboxMessage(MessageKind.SIGNAL, "paid", AT + 9, b'{"amount":49}'),
        "m2": InboxMessage(MessageKind.CHILD, "", AT + 10, None, "m.m2"),
    },
)
ENDED = [
    Head(run_id(10 + place), "shop", "order", 3, AT, status, AT + 7, commit_seq=9, journal=b"[1]")
    for place, status in enumerate(
        (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED, Status.TIMED_OUT)
    )
]
SLEEPING = Head(run_id(4), "shop", "order", 3, AT, Status.SLEEPING, None, AT + 9, AT + 9)
OLDER_HEADS = (FRESH, HELD, WAITING, SLEEPING, *ENDED)
CHILD = Head(
    run_id(5),
    "shop",
    "refund",
    1,
    AT,
    Status.FAILED,
    AT + 7,
    wake_at=AT + 7,
    commit_seq=2,
    journal=b"[1]",
    parent=HELD.run_id,
    depth=1,
    notify_pending=True,
    cascade=True,
)
SIGNAL = InboxMessage(MessageKind.SIGNAL, "approved", AT + 14, b"null")
SENT_TO = Head(run_id(6), "shop", "refund", 1, AT, Status.WAITING, None, AT + 900, AT + 900)
OLDER_RECEIVED = replace(SENT_TO, ready_at=0, wake_at=AT + 15, inbox_seq=1, inbox={"m3": SIGNAL})
RECEIVED = replace(SENT_TO, inbox_seq=1, overflow_last=1, overflow_count=1, format=RUN_FORMAT)
PAGE = Blob(f"p.{TOKEN}.1", b'[[0,"s",1]]')
BODY = Blob("m.m2", b'{"large":true}')

PROJECT = Project("shop", "acme", AT)
GRANTS = (
    Grant("ab" * 32, "session", "acme", "owner", expires_at=AT),
    Grant("cd" * 32, "secret", "acme", project="shop"),
)
RESOURCES = (
    Resource("shop", "queue", "orders", b'{"visibility":30}', None, AT),
    Resource("shop", "database", "database", b"{}", "sealed", AT),
)
LONG = b'{"steps":[' + b'{"kind":"sleep"},' * 20 + b"]}"
VERSIONS = (
    Published("shop", "order", 1, False, AT + 1, b'{"steps":[]}'),
    Published("shop", "order", 2, False, AT + 2, LONG),
    Published("shop", "order", 3, True, AT + 3, b'{"steps":[1]}'),
)


@pytest.fixture
def home() -> Iterator[DynamoHome]:
    opened = DynamoHome()
    yield opened
    opened.close()


def as_json(value: Any) -> Any:
    """An item with its bytes in base64, as DynamoDB itself writes them."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {name: as_json(inner) for name, inner in value.items()}
        case list():
            return [as_json(inner) for inner in value]
    return value


def as_item(value: Any) -> Any:
    """The opposite of as_json."""
    match value:
        case {"B": str(text)}:
            return {"B": base64.b64decode(text)}
        case dict():
            return {name: as_item(inner) for name, inner in value.items()}
        case list():
            return [as_item(inner) for inner in value]
    return value


def inflated(item: dict[str, Any]) -> dict[str, Any]:
    """An item with its deflated document as text: other builds of zlib deflate otherwise."""
    deflated = item.get("z", {}).get("B")
    return item if deflated is None else {**item, "z": zlib.decompress(deflated)}


def golden(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))


def put_golden(table: str, items: Sequence[Any]) -> None:
    for item in items:
        client().put_item(TableName=table, Item=as_item(item))


def test_runs_are_written_as_in_the_golden_file(
    home: DynamoHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    for head in (*OLDER_HEADS, CHILD, SENT_TO):
        assert home.runs.create(head, [BODY] if head is WAITING else []) == Done(head)
    delivered = home.runs.deliver(SENT_TO.run_id, "m3", SIGNAL, AT + 15, None, "approval-42")
    assert delivered == Delivered(RECEIVED, SIGNAL.at, wakes=False)
    home.runs.commit(Commit(HELD.run_id, TOKEN, 1, HELD.journal, wants="paid", blobs=(PAGE,)))
    monkeypatch.setattr(dynamodb_blobs, "CHUNK", 4)
    home.runs.create(FRESH, [Blob("input", b"0123456789")])
    assert as_json(home.items(RUNS)) == golden("runs")


@pytest.mark.parametrize(
    ("name", "received"),
    [
        ("runs", RECEIVED),
        ("runs_before_expiry", RECEIVED),
        ("runs_before_overflow", OLDER_RECEIVED),
    ],
)
def test_children_notifications_and_deliveries_of_the_golden_files_are_read(
    home: DynamoHome, name: str, received: Head
) -> None:
    put_golden(RUNS, golden(name))
    assert home.runs.get(CHILD.run_id) == CHILD
    again = replace(SIGNAL, at=AT + 99)
    delivered = home.runs.deliver(SENT_TO.run_id, "m4", again, AT + 99, None, "approval-42")
    assert delivered == Delivered(received, SIGNAL.at)
    slots = home.runs.overflow(SENT_TO.run_id, 1, received.overflow_last)
    assert slots == ({1: Slot("m3", SIGNAL, "approval-42")} if received is RECEIVED else {})
    assert isinstance(home.runs.mark_notified(CHILD.run_id), Done)


OF_RUNS = (
    "runs",
    "runs_before_expiry",
    "runs_before_overflow",
    "runs_before_cascades",
    "runs_before_children",
)


# The oldest file was written when there were no children, no pending notifications, and no places
# of messages; the next one when no cascade and no time of a claim was stored. Before the newest the
# time of a claim stood where now only an item's expiry does.
@pytest.mark.parametrize("name", OF_RUNS)
def test_runs_of_the_golden_files_are_read(home: DynamoHome, name: str) -> None:
    put_golden(RUNS, golden(name))
    for head in OLDER_HEADS:
        found = home.runs.get(head.run_id)
        assert found is not None
        assert (found.commit_seq == 2) if head is HELD else (found == head)
    held = home.runs.by_key("shop", "order", "order-17")
    assert held is not None
    assert held.run_id == HELD.run_id
    assert CODEC.decode(held.journal).records == (RECORD,)
    assert home.runs.blob(HELD.run_id, PAGE.name) == PAGE.data
    assert home.runs.blob(WAITING.run_id, BODY.name) == BODY.data
    assert home.runs.blob(FRESH.run_id, "input") == b"0123456789"
    due, _ = home.runs.due(AT + 1_000, None, 10)
    newer = {CHILD.run_id, SENT_TO.run_id}
    older = [one for one in due if one.subject.id not in newer]
    assert sorted(older, key=lambda one: one.wake_at) == [
        Due(about_run(SLEEPING.run_id, "shop"), AT + 9),
        Due(about_run(WAITING.run_id, "shop"), AT + 100),
    ]
    listed = home.runs.list("shop", "order", None, 100, None)
    assert {head.run_id for head in listed} == {head.run_id for head in OLDER_HEADS}


@pytest.mark.parametrize("name", OF_RUNS)
def test_a_run_of_the_golden_files_goes_on(home: DynamoHome, name: str) -> None:
    put_golden(RUNS, golden(name))
    claimed = home.runs.claim(WAITING.run_id, TOKEN, AT + 100, AT + 60_000)
    assert isinstance(claimed, Done)
    delivered = home.runs.deliver(WAITING.run_id, "m3", replace(SIGNAL, at=AT), AT, None)
    assert isinstance(delivered, Delivered)
    assert delivered.head is not None
    assert list(delivered.head.inbox) == ["m1", "m2", "m3"]
    commit = Commit(WAITING.run_id, TOKEN, 4, b"[]", consumed=("m1",), release=True)
    committed = home.runs.commit(commit)
    assert isinstance(committed, Done)
    assert list(committed.head.inbox) == ["m2", "m3"]
    assert isinstance(home.runs.cancel(SLEEPING.run_id, AT), Done)


def test_runs_in_lanes_are_written_as_in_the_golden_file(home: DynamoHome) -> None:
    database = DynamoDB(cast(Any, FullList()), SystemClock())
    assert DynamoRuns(database, RUNS, SHARDS).create(FRESH) == Done(IN_A_LANE)
    assert as_json(home.items(RUNS)) == golden("runs_in_lanes")


def test_runs_in_lanes_of_the_golden_file_are_read(home: DynamoHome) -> None:
    put_golden(RUNS, golden("runs_in_lanes"))
    assert home.runs.get(FRESH.run_id) == IN_A_LANE
    assert home.runs.list("shop", "order", None, 10, None) == [IN_A_LANE]


def test_control_items_are_written_as_in_the_golden_file(home: DynamoHome) -> None:
    home.projects.put(PROJECT)
    for grant in GRANTS:
        home.grants.put(grant)
    for resource in RESOURCES:
        home.resources.put(resource)
    for version, published in zip(VERSIONS, (True, False, True), strict=True):
        home.versions.publish("shop", "order", version.document, published, version.created_at)
        if version.version == 2:
            home.versions.set_enabled("shop", "order", False)
    stored = [inflated(item) for item in home.items(CONTROL)]
    assert stored == [inflated(as_item(item)) for item in golden("control")]


def test_control_items_of_the_golden_file_are_read(home: DynamoHome) -> None:
    put_golden(CONTROL, golden("control"))
    assert home.projects.get("shop") == PROJECT
    assert [home.grants.get(grant.token_hash) for grant in GRANTS] == list(GRANTS)
    for one in RESOURCES:
        assert home.resources.get("shop", one.kind, one.name) == one
    assert [home.versions.get("shop", "order", number) for number in (1, 2, 3)] == list(VERSIONS)
    assert home.versions.newest_enabled("shop", "order") == VERSIONS[2]
    assert list(home.versions.list("shop", None, 10)) == [VERSIONS[2]]
    assert home.versions.publish("shop", "order", b"x", True, AT).version == 4


def test_tables_and_indexes_are_those_of_the_golden_file() -> None:
    tables = {name: definition(model, name) for name, model in _MODELS.items()}
    assert tables == golden("tables")


_MODELS = {"runs": HeadItem, "control": ControlItem}
