"""What only the runs in DynamoDB have: keys, chunks, shards, and other writers in between."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from stepwell_engine.adapters.dynamodb.blobs import CHUNK
from stepwell_engine.adapters.dynamodb.client import DynamoDB, Item, Rejected, TooLarge
from stepwell_engine.adapters.dynamodb.heads import shard_of, to_item
from stepwell_engine.adapters.dynamodb.models import HeadItem
from stepwell_engine.adapters.dynamodb.runs import DynamoRuns
from stepwell_engine.adapters.dynamodb.updates import TURNS
from stepwell_engine.adapters.process.system import SystemClock
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.status import Status
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.errors import Unavailable
from stepwell_engine.limits import INLINE_INPUT, KIB, MINUTE, PAGE_ABOVE
from stepwell_engine.ports import Done, Due, Refused
from tests.aws.overtaken import Overtaken, nothing
from tests.contract.heads import (
    COMMIT,
    NOW,
    OTHER,
    RUN,
    TOKEN,
    UNTIL,
    a_head,
    held,
    pages,
    put,
)
from tools.bill.meter_sizes import item_size
from tools.moto_home import RUNS, DynamoHome, client

LATER = UNTIL + 10_000
LETTERS = "018abcde-0000-7000-8000-000000000001"


@pytest.fixture
def home() -> Iterator[DynamoHome]:
    opened = DynamoHome()
    yield opened
    opened.close()


# --- keys -------------------------------------------------------------------------------------


def stored_id(run_id: str) -> bytes:
    stored: bytes = HeadItem.run_id.serialize(run_id)
    assert HeadItem.run_id.deserialize(stored) == run_id
    return stored


def test_a_uuid_is_stored_in_16_bytes() -> None:
    assert stored_id(RUN) == UUID(RUN).bytes


@pytest.mark.parametrize(
    "run_id",
    ["a", "", "run-17", "x" * 16, "ÄÖ", LETTERS.upper(), RUN.replace("-", ""), f"{{{RUN}}}"],
)
def test_any_other_text_comes_back_as_it_was(run_id: str) -> None:
    assert stored_id(run_id) == b"\xff" + run_id.encode()


def test_a_uuid_that_begins_like_a_text_comes_back_as_it_was() -> None:
    assert stored_id("ff890000-0000-7000-8000-000000000001")[:1] == b"\xff"


def test_ids_are_in_the_order_of_their_texts() -> None:
    ids = [f"0189{number:04x}-0000-7000-8000-{number:012x}" for number in (0, 1, 255, 256, 65_535)]
    assert sorted(map(stored_id, ids)) == [stored_id(run_id) for run_id in ids]


def test_a_typical_head_is_one_write_unit_until_its_journal_moves_to_a_page() -> None:
    head = held(
        project="my-project",
        workflow="order-pipeline",
        journal=bytes(PAGE_ABOVE),
        input=bytes(INLINE_INPUT),
        commit_seq=200,
        inbox_seq=9,
        lost_leases=1,
    )
    assert item_size(to_item(head, 16)) <= KIB


# --- blobs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "items"), [(0, 1), (CHUNK, 1), (CHUNK + 1, 2), (2 * CHUNK, 2), (2 * CHUNK + 1, 3)]
)
def test_a_blob_is_cut_into_chunks(home: DynamoHome, size: int, items: int) -> None:
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    put(home.runs, a_head())
    before = len(home.items(RUNS))
    home.runs.create(a_head(version=4), [Blob("input", data)])
    assert len(home.items(RUNS)) - before == items
    assert home.runs.blob(RUN, "input") == data


@pytest.mark.parametrize("written", range(3))
def test_a_blob_is_not_there_before_all_of_its_chunks_are(home: DynamoHome, written: int) -> None:
    class Stops(DynamoDB):
        """Takes so many items."""

        left = written

        def put(
            self,
            table: str,
            item: Item,
            condition: str | None = None,
            values: Mapping[str, Any] | None = None,
            *,
            patient: bool = True,
        ) -> Rejected | None:
            if not self.left:
                raise Unavailable("gone")
            self.left -= 1
            return super().put(table, item, condition, values, patient=patient)

    data = bytes(2 * CHUNK + 1)
    put(home.runs, held())
    runs = DynamoRuns(Stops(client(), SystemClock()), RUNS)
    commit = replace(COMMIT, blobs=(Blob("page", data),))
    with pytest.raises(Unavailable):
        runs.commit(commit)
    assert len(home.items(RUNS)) == 1 + written
    assert home.runs.blob(RUN, "page") is None
    assert home.runs.get(RUN) == held()
    assert isinstance(home.runs.commit(commit), Done)
    assert home.runs.blob(RUN, "page") == data


def test_an_input_is_never_overwritten(home: DynamoHome) -> None:
    home.runs.create(a_head(input=None), [Blob("input", b"first")])
    home.runs.create(a_head(input=None), [Blob("input", b"second")])
    assert home.runs.blob(RUN, "input") == b"first"


def test_a_head_that_no_item_can_hold_is_refused_in_words(home: DynamoHome) -> None:
    with pytest.raises(TooLarge, match="exceeded the maximum allowed size"):
        home.runs.create(a_head(journal=bytes(400 * KIB)))
    assert home.runs.get(RUN) is None


# --- others in between ------------------------------------------------------------------------


def test_a_cancel_follows_a_run_from_hand_to_hand(home: DynamoHome) -> None:
    """Held when first looked at, released before the second try, claimed before the third."""
    put(home.runs, held())
    database = Overtaken(
        nothing,
        lambda: home.runs.commit(replace(COMMIT, release=True)),
        lambda: home.runs.claim(RUN, OTHER, NOW, UNTIL),
    )
    written = DynamoRuns(database, RUNS).cancel(RUN, NOW)
    assert isinstance(written, Done)
    assert database.calls == 4
    head = written.head
    assert (head.status, head.lease_token, head.wake_at) == (Status.CANCELLED, OTHER, UNTIL)


def test_a_cancel_finds_a_run_that_ended_meanwhile(home: DynamoHome) -> None:
    put(home.runs, held())
    ends = replace(COMMIT, status=Status.SUCCEEDED, release=True)
    database = Overtaken(nothing, lambda: home.runs.commit(ends))
    written = DynamoRuns(database, RUNS).cancel(RUN, NOW)
    assert written == Refused(home.runs.get(RUN))


def test_a_cancel_gives_up_on_a_run_that_never_rests(home: DynamoHome) -> None:
    put(home.runs, held())

    def hand_over() -> None:
        head = home.runs.get(RUN)
        assert head is not None
        if database.calls % 2:
            home.runs.claim(RUN, TOKEN, NOW, UNTIL)
        else:
            home.runs.commit(replace(COMMIT, commit_seq=head.commit_seq, release=True))

    database = Overtaken(*[hand_over] * TURNS)
    with pytest.raises(Unavailable, match="changed hands"):
        DynamoRuns(database, RUNS).cancel(RUN, NOW)
    assert database.calls == TURNS


def test_a_lost_lease_that_another_takes_first_is_refused(home: DynamoHome) -> None:
    put(home.runs, held())
    database = Overtaken(nothing, lambda: home.runs.claim(RUN, OTHER, LATER, LATER + 60_000))
    written = DynamoRuns(database, RUNS).claim(RUN, "c" * 12, LATER, LATER + 60_000)
    assert written == Refused(home.runs.get(RUN))
    assert written.head is not None
    assert (written.head.lease_token, written.head.lost_leases) == (OTHER, 1)


def test_a_run_released_between_the_two_looks_of_a_claim_is_claimed(home: DynamoHome) -> None:
    put(home.runs, held())
    database = Overtaken(nothing, lambda: home.runs.commit(replace(COMMIT, release=True)))
    written = DynamoRuns(database, RUNS).claim(RUN, OTHER, LATER, LATER + 60_000)
    assert isinstance(written, Done)
    assert (written.head.lease_token, written.head.lost_leases) == (OTHER, 0)


def test_of_two_that_find_a_key_free_again_one_gets_it(home: DynamoHome) -> None:
    put(home.runs, a_head(idempotency_key="k"))
    home.forget(RUN)
    other = a_head("other", idempotency_key="k")
    database = Overtaken(nothing, lambda: home.runs.create(other))
    written = DynamoRuns(database, RUNS).create(a_head("late", idempotency_key="k"))
    assert written == Refused(other)
    assert home.runs.get("late") is None
    assert home.runs.by_key("shop", "order", "k") == other


def test_a_key_whose_holders_vanish_one_after_the_other_is_unavailable(home: DynamoHome) -> None:
    def hold_and_vanish() -> None:
        run_id = f"run-{database.calls}"
        assert isinstance(home.runs.create(a_head(run_id, idempotency_key="k")), Done)
        home.forget(run_id)

    database = Overtaken(*[hold_and_vanish] * TURNS)
    with pytest.raises(Unavailable, match="idempotency key changed hands"):
        DynamoRuns(database, RUNS).create(a_head("late", idempotency_key="k"))
    assert home.runs.get("late") is None


def child(**fields: Any) -> Head:
    """A run with a parent."""
    return held(parent="parent", depth=1, **fields)


CANCELLED_CHILD: dict[str, Any] = {
    "status": Status.CANCELLED,
    "notify_pending": True,
    "wake_at": NOW,
}


def test_a_cancel_of_a_child_looks_at_it_once_whoever_holds_it(home: DynamoHome) -> None:
    put(home.runs, child())
    database = Overtaken(nothing, lambda: home.runs.commit(replace(COMMIT, release=True)))
    written = DynamoRuns(database, RUNS).cancel(RUN, NOW)
    assert isinstance(written, Done)
    assert database.calls == 2
    head = written.head
    assert (head.notify_pending, head.lease_token, head.wake_at) == (True, None, NOW)


def test_an_outcome_is_recorded_although_its_run_notifies_meanwhile(home: DynamoHome) -> None:
    put(home.runs, child(**CANCELLED_CHILD))
    database = Overtaken(nothing, lambda: home.runs.mark_notified(RUN))
    outcome = replace(COMMIT, expect="stopped", release=True, wake_at=None)
    written = DynamoRuns(database, RUNS).commit(outcome)
    assert isinstance(written, Done)
    assert database.calls == 3
    assert (written.head.notify_pending, written.head.wake_at) == (False, None)


def test_a_close_sees_that_its_run_notifies_meanwhile(home: DynamoHome) -> None:
    put(home.runs, child(**CANCELLED_CHILD))
    database = Overtaken(nothing, lambda: home.runs.mark_notified(RUN))
    written = DynamoRuns(database, RUNS).close(RUN, TOKEN, 0, b"settled")
    assert isinstance(written, Done)
    assert (written.head.notify_pending, written.head.wake_at) == (False, None)


def test_marking_as_notified_sees_that_the_lease_ends_meanwhile(home: DynamoHome) -> None:
    put(home.runs, child(**CANCELLED_CHILD))
    outcome = replace(COMMIT, expect="stopped", release=True, wake_at=None)
    database = Overtaken(nothing, lambda: home.runs.commit(outcome))
    written = DynamoRuns(database, RUNS).mark_notified(RUN)
    assert isinstance(written, Done)
    assert (written.head.notify_pending, written.head.wake_at) == (False, None)


# --- indexes ----------------------------------------------------------------------------------


def put_in_every_shard(home: DynamoHome, shards: int) -> set[str]:
    ids = [str(number) for number in range(4 * shards)]
    assert {shard_of(run_id, shards) for run_id in ids} == set(range(shards))
    for run_id in ids:
        put(home.runs, a_head(run_id, wake_at=NOW))
    return set(ids)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_each_minute_the_sweep_begins_at_another_shard_and_visits_all(
    home: DynamoHome, size: int
) -> None:
    ids = put_in_every_shard(home, 4)
    first = set()
    for minute in range(4):
        found = list(pages(home.runs, NOW + minute * MINUTE, size))
        assert sorted(due.subject.id for due in found) == sorted(ids)
        first.add(shard_of(found[0].subject.id, 4))
    assert first == set(range(4))


def test_more_shards_find_what_fewer_have_stored(home: DynamoHome) -> None:
    ids = put_in_every_shard(home, 4)
    wider = DynamoRuns(DynamoDB(client(), SystemClock()), RUNS, shards=9)
    put(wider, a_head("wide", wake_at=NOW))
    assert {due.subject.id for due in pages(wider, NOW)} == {*ids, "wide"}


def test_within_a_shard_what_was_due_first_comes_first(home: DynamoHome) -> None:
    runs = DynamoRuns(DynamoDB(client(), SystemClock()), RUNS, shards=1)
    for run_id, wake_at in (("a", 3), ("b", 1), ("c", 2)):
        put(runs, a_head(run_id, wake_at=wake_at))
    page, cursor = runs.due(NOW, None, 2)
    assert page == [Due(about_run("b", "shop"), 1), Due(about_run("c", "shop"), 2)]
    assert runs.due(NOW, cursor, 2) == ([Due(about_run("a", "shop"), 3)], None)


def test_a_list_of_more_than_one_batch_is_whole_and_in_order(home: DynamoHome) -> None:
    ids = [f"{number:03}" for number in range(105)]
    for run_id in ids:
        put(home.runs, a_head(run_id))
    listed = [head.run_id for head in home.runs.list("shop", "order", None, 101, None)]
    assert listed == ids[::-1][:101]


def test_a_run_that_is_gone_is_not_listed(home: DynamoHome) -> None:
    put(home.runs, a_head("a"))
    put(home.runs, a_head("b"))
    home.forget("b")
    assert [head.run_id for head in home.runs.list("shop", "order", None, 1, None)] == ["a"]
