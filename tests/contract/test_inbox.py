"""Delivering messages: what wakes a run, what is refused, how much an inbox holds."""

from dataclasses import replace

import pytest

from stepwell_engine.core.run.head import Blob
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind
from stepwell_engine.core.run.status import Status
from stepwell_engine.ports import Delivered, Done, Refused, Runs
from tests.contract.heads import (
    COMMIT,
    ENDED_STATUSES,
    LIVE_STATUSES,
    NOW,
    RUN,
    a_head,
    check_delivered,
    check_refused,
    held,
    inbox,
    put,
    some_message,
)
from tests.contract.inboxes import pending


@pytest.mark.parametrize("status", LIVE_STATUSES)
def test_a_message_wakes_a_live_run(runs: Runs, status: Status) -> None:
    far = NOW + 1_000_000
    head = put(runs, a_head(status=status, ready_at=far, wake_at=far, commit_seq=3))
    written = runs.deliver(RUN, "m1", some_message(), NOW, None)
    after = replace(head, ready_at=0, wake_at=NOW, inbox_seq=1, inbox={"m1": some_message()})
    check_delivered(runs, written, after)


def test_a_message_leaves_a_lease_in_force_and_its_times(runs: Runs) -> None:
    head = put(runs, held())
    written = runs.deliver(RUN, "m1", some_message(), NOW, None)
    after = replace(head, inbox_seq=1, inbox={"m1": some_message()})
    check_delivered(runs, written, after, wakes=False)


def test_a_message_joins_what_is_there(runs: Runs) -> None:
    put(runs, a_head(inbox=inbox([1])))
    written = runs.deliver(RUN, "2", some_message("other"), NOW, None)
    assert isinstance(written, Delivered)
    assert written.head is not None
    assert written.head.inbox == {"1": some_message(), "2": some_message("other")}


@pytest.mark.parametrize("status", ENDED_STATUSES)
def test_an_ended_run_refuses_a_message(runs: Runs, status: Status) -> None:
    put(runs, a_head(status=status))
    check_refused(runs, lambda: runs.deliver(RUN, "m1", some_message(), NOW, None))


def test_a_run_that_does_not_exist_refuses_a_message(runs: Runs) -> None:
    assert runs.deliver(RUN, "m1", some_message(), NOW, Blob("m1", b"x")) == Refused(None)


def test_a_repeated_delivery_is_told_when_it_came_first_and_wakes_nothing(runs: Runs) -> None:
    head = put(runs, a_head(ready_at=NOW + 5, inbox=inbox([1]), inbox_seq=1))
    again = replace(some_message("other"), at=NOW + 1)
    check_delivered(runs, runs.deliver(RUN, "1", again, NOW + 1, None), head)


@pytest.mark.parametrize("status", ENDED_STATUSES)
def test_a_message_that_is_still_there_is_delivered_also_when_the_run_has_ended(
    runs: Runs, status: Status
) -> None:
    head = put(runs, a_head(status=status, inbox=inbox([1])))
    check_delivered(runs, runs.deliver(RUN, "1", some_message(), NOW + 1, None), head)


def test_a_message_without_a_key_that_was_consumed_comes_anew(runs: Runs) -> None:
    put(runs, held())
    runs.deliver(RUN, "m", some_message(), NOW, None)
    runs.commit(replace(COMMIT, consumed=("m",)))
    later = replace(some_message(), at=NOW + 1)
    written = runs.deliver(RUN, "m", later, NOW + 1, None)
    assert isinstance(written, Delivered)
    assert written.at == NOW + 1
    assert written.head is not None
    assert written.head.inbox == {"m": later}


def test_the_same_id_is_another_message_for_another_run(runs: Runs) -> None:
    put(runs, a_head(inbox=inbox([1])))
    put(runs, a_head("other"))
    written = runs.deliver("other", "1", some_message(), NOW, None)
    assert isinstance(written, Delivered)
    assert written.head is not None
    assert written.head.run_id == "other"


def test_an_inbox_keeps_the_order_of_arrival(runs: Runs) -> None:
    put(runs, held())
    for number, message_id in enumerate(["z", "b", "m", "a", "c"]):
        at = NOW + number
        runs.deliver(RUN, message_id, replace(some_message(), at=at), at, None)
    runs.commit(replace(COMMIT, consumed=("b",)))
    runs.deliver(RUN, "b", replace(some_message(), at=NOW + 9), NOW + 9, None)
    assert pending(runs, runs.get(RUN)) == ["z", "m", "a", "c", "b"]


@pytest.mark.parametrize("message_id", ["a.b", "#x", "$", "a b", "ä", "'"])
def test_the_id_of_a_message_is_any_text(runs: Runs, message_id: str) -> None:
    put(runs, held())
    written = runs.deliver(RUN, message_id, some_message(), NOW, None)
    assert isinstance(written, Delivered)
    assert written.head is not None
    assert written.head.inbox == {message_id: some_message()}
    consumed = runs.commit(replace(COMMIT, consumed=(message_id,)))
    assert isinstance(consumed, Done)
    assert consumed.head.inbox == {}


def test_a_full_inbox_refuses_and_takes_again_once_one_is_consumed(runs: Runs, room: int) -> None:
    put(runs, held(inbox=inbox(range(room - 1))))
    last = runs.deliver(RUN, "last", some_message(), NOW, None)
    assert isinstance(last, Delivered)
    assert last.head is not None
    assert last.head.pending == room
    check_refused(runs, lambda: runs.deliver(RUN, "more", some_message(), NOW, None))
    check_refused(runs, lambda: runs.deliver(RUN, "more", some_message(), NOW, None, key="k"))
    check_delivered(runs, runs.deliver(RUN, "0", some_message(), NOW, None), last.head)
    runs.commit(replace(COMMIT, consumed=("0",)))
    more = runs.deliver(RUN, "more", some_message(), NOW, None, key="k")
    assert isinstance(more, Delivered)
    assert more.head is not None
    assert more.head.pending == room
    check_refused(runs, lambda: runs.deliver(RUN, "0", some_message(), NOW, None))


def test_a_full_inbox_takes_the_end_of_a_child(runs: Runs, room: int) -> None:
    put(runs, held(inbox=inbox(range(room))))
    child = InboxMessage(MessageKind.CHILD, "succeeded", NOW, b"[]")
    written = runs.deliver(RUN, "child", child, NOW, None)
    assert isinstance(written, Delivered)
    assert written.head is not None
    assert written.head.inbox["child"] == child
    check_refused(runs, lambda: runs.deliver(RUN, "more", some_message(), NOW, None))


def test_a_message_may_have_its_body_in_a_blob(runs: Runs) -> None:
    put(runs, a_head())
    message = InboxMessage(MessageKind.SIGNAL, "paid", NOW, None, "mail/m1")
    written = runs.deliver(RUN, "m1", message, NOW, Blob("mail/m1", b"body"))
    assert isinstance(written, Delivered)
    assert written.head is not None
    assert written.head.inbox == {"m1": message}
    assert runs.blob(RUN, "mail/m1") == b"body"


def test_an_empty_body_is_not_a_missing_one(runs: Runs) -> None:
    put(runs, a_head())
    runs.deliver(RUN, "m1", InboxMessage(MessageKind.SIGNAL, "", 0, b""), NOW, None)
    head = runs.get(RUN)
    assert head is not None
    assert head.inbox["m1"].body == b""


def test_a_woken_run_can_be_claimed_by_a_clock_that_is_behind(runs: Runs) -> None:
    put(runs, a_head(ready_at=NOW + 1_000_000, commit_seq=1))
    runs.deliver(RUN, "m1", some_message(), NOW, None)
    assert isinstance(runs.claim(RUN, "t", NOW - 1_500, NOW), Done)


# --- keys -------------------------------------------------------------------------------------


def later_message() -> InboxMessage:
    """A message that comes after some_message."""
    return replace(some_message("later"), at=NOW + 7)


def test_a_key_is_delivered_once_whatever_the_id(runs: Runs) -> None:
    put(runs, a_head())
    first = runs.deliver(RUN, "m1", some_message(), NOW, None, key="k")
    assert isinstance(first, Delivered)
    for message_id in ("m1", "m2"):
        again = runs.deliver(RUN, message_id, later_message(), NOW + 7, Blob("b", b"x"), key="k")
        check_delivered(runs, again, first.head)
    assert runs.blob(RUN, "b") is None


def test_a_key_outlives_the_consumption_of_its_message(runs: Runs) -> None:
    put(runs, held())
    runs.deliver(RUN, "m1", some_message(), NOW, None, key="k")
    consumed = runs.commit(replace(COMMIT, taken=(1,)))
    again = runs.deliver(RUN, "m1", later_message(), NOW + 7, None, key="k")
    check_delivered(runs, again, consumed.head)


def test_a_key_outlives_the_end_of_its_run(runs: Runs) -> None:
    put(runs, held())
    runs.deliver(RUN, "m1", some_message(), NOW, None, key="k")
    ended = runs.cancel(RUN, NOW)
    check_delivered(runs, runs.deliver(RUN, "m1", later_message(), NOW, None, key="k"), ended.head)
    check_refused(runs, lambda: runs.deliver(RUN, "m2", later_message(), NOW, None, key="k2"))


def test_a_key_of_a_refused_delivery_is_not_taken(runs: Runs, room: int) -> None:
    head = put(runs, held(inbox=inbox(range(room))))
    assert runs.deliver(RUN, "m1", some_message(), NOW, None, key="k") == Refused(head)
    runs.commit(replace(COMMIT, consumed=("0",)))
    written = runs.deliver(RUN, "m1", later_message(), NOW + 7, None, key="k")
    assert isinstance(written, Delivered)
    assert written.at == NOW + 7


def test_a_key_belongs_to_its_run(runs: Runs) -> None:
    put(runs, a_head())
    put(runs, a_head("other"))
    runs.deliver(RUN, "m1", some_message(), NOW, None, key="k")
    written = runs.deliver("other", "m1", later_message(), NOW + 7, None, key="k")
    assert isinstance(written, Delivered)
    assert written.at == NOW + 7


@pytest.mark.parametrize("key", ["k", "K", "k ", "ä", "k" * 200])
def test_keys_differ_by_every_character(runs: Runs, key: str) -> None:
    put(runs, a_head())
    for other in ("k", "K", "k ", "ä", "k" * 200):
        if other != key:
            runs.deliver(RUN, f"m-{other[:2]}-{len(other)}", some_message(), NOW, None, key=other)
    written = runs.deliver(RUN, "mine", later_message(), NOW + 7, None, key=key)
    assert isinstance(written, Delivered)
    assert written.at == NOW + 7


def test_a_run_that_does_not_exist_refuses_a_key(runs: Runs) -> None:
    assert runs.deliver(RUN, "m1", some_message(), NOW, None, key="k") == Refused(None)
    head = put(runs, a_head())
    written = runs.deliver(RUN, "m1", some_message(), NOW, None, key="k")
    assert isinstance(written, Delivered)
    assert written.head != head
