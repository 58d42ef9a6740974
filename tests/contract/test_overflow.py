"""Signals beyond the first few stand beside the head, in the order in which they counted."""

from dataclasses import replace
from typing import Any

import pytest

from stepwell_engine.adapters import delivery
from stepwell_engine.adapters.delivery import KeyEntry, deliver
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind, Slot
from stepwell_engine.core.run.status import Status
from stepwell_engine.errors import Unavailable
from stepwell_engine.limits import BASE_RUN_FORMAT, INLINE_MESSAGES, RUN_FORMAT
from stepwell_engine.ports import Commit, Delivered, Done, Refused, Runs
from tests.contract.heads import (
    COMMIT,
    ENDED_STATUSES,
    NOW,
    RUN,
    TOKEN,
    UNTIL,
    a_head,
    check_refused,
    held,
    inbox,
    put,
    some_message,
)
from tests.contract.homes import Home
from tests.contract.inboxes import pending, steps_of

FULL = inbox(range(INLINE_MESSAGES))  # no more goes into such a head
PARKED: dict[str, Any] = {"commit_seq": 4, "wants_seq": 4, "ready_at": UNTIL, "wake_at": UNTIL}


def send(runs: Runs, message_id: str, name: str = "paid", key: str | None = None) -> Head:
    """Deliver a signal; the head after it."""
    written = runs.deliver(RUN, message_id, some_message(name), NOW, None, key)
    assert isinstance(written, Delivered)
    assert written.head is not None
    return written.head


def test_the_last_that_goes_into_the_head_and_the_first_that_does_not(runs: Runs) -> None:
    few = inbox(range(INLINE_MESSAGES - 1))
    before = put(runs, a_head(inbox=few, inbox_seq=7, wants="paid", **PARKED))
    inside = send(runs, "inside")
    added = {**before.inbox, "inside": some_message()}
    assert inside == replace(before, inbox_seq=8, inbox=added, ready_at=0, wake_at=NOW)
    beside = send(runs, "beside")
    assert beside == replace(
        inside, inbox_seq=9, overflow_last=1, overflow_count=1, format=RUN_FORMAT
    )
    assert runs.get(RUN) == beside
    assert runs.overflow(RUN, 1, 1) == {1: Slot("beside", some_message())}


def test_nothing_goes_into_a_head_beside_which_anything_is_pending(runs: Runs) -> None:
    put(runs, held(inbox=FULL))
    for name in ("a", "b"):
        send(runs, name)
    runs.commit(replace(COMMIT, consumed=tuple(FULL)))
    assert pending(runs, send(runs, "c")) == ["a", "b", "c"]
    runs.commit(replace(COMMIT, commit_seq=1, taken=(1, 2, 3)))
    head = send(runs, "d")
    assert (list(head.inbox), head.overflow_last, head.overflow_count) == (["d"], 3, 0)


def test_the_end_of_a_child_goes_into_the_head(runs: Runs) -> None:
    put(runs, a_head(inbox=FULL, overflow_last=3, overflow_count=2, **PARKED))
    child = InboxMessage(MessageKind.CHILD, "succeeded", NOW, b"[]")
    written = runs.deliver(RUN, "child", child, NOW, None)
    assert isinstance(written, Delivered)
    assert written.wakes
    assert written.head is not None
    assert list(written.head.inbox) == [*FULL, "child"]
    assert (written.head.ready_at, written.head.wake_at) == (0, NOW)


def test_a_take_counts_down_whatever_came_meanwhile(runs: Runs) -> None:
    put(runs, held(inbox=FULL))
    for number in range(4):
        send(runs, f"m{number}")
    written = runs.commit(replace(COMMIT, taken=(2, 4)))
    assert isinstance(written, Done)
    assert (written.head.overflow_count, written.head.overflow_last) == (2, 4)
    left = runs.overflow(RUN, 1, 4)
    assert (left[1].id, left[3].id) == ("m0", "m2")


def test_slots_are_read_from_one_number_to_another(runs: Runs) -> None:
    put(runs, held(inbox=FULL))
    put(runs, held(run_id="other", inbox=FULL))
    runs.deliver("other", "x", some_message(), NOW, None)
    for number in range(1, 13):
        send(runs, f"m{number}")
    assert [slot.id for slot in runs.overflow(RUN, 2, 4).values()] == ["m2", "m3", "m4"]
    assert list(runs.overflow(RUN, 9, 99)) == [9, 10, 11, 12]
    assert runs.overflow(RUN, 13, 99) == {}


def test_a_message_beside_the_head_comes_back_as_it_was(runs: Runs) -> None:
    put(runs, held(inbox=FULL))
    sent = [
        InboxMessage(MessageKind.SIGNAL, "ä.b", NOW + 3, b"", None),
        InboxMessage(MessageKind.SIGNAL, "paid", NOW, b"300", "m.1"),
        InboxMessage(MessageKind.SIGNAL, "paid", NOW, None, None),
    ]
    for number, message in enumerate(sent):
        runs.deliver(RUN, f"#{number}", message, NOW, None, f"key {number}")
    slots = runs.overflow(RUN, 1, 3)
    assert [slot.message for slot in slots.values()] == sent
    assert [slot.key for slot in slots.values()] == ["key 0", "key 1", "key 2"]


# --- quiet and loud ---------------------------------------------------------------------------


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize(
    ("fields", "wakes"),
    [
        ({"wants": "paid"}, True),
        ({"wants": "other"}, False),
        ({"wants": ""}, False),
        ({"wants": "other", "commit_seq": 5}, True),  # an older version parked it since
        ({"wants": "", "commit_seq": 0, "wants_seq": 0}, False),  # it has not begun
        ({"wants": "paid", "lease_token": TOKEN, "lease_expires_at": UNTIL}, False),
    ],
)
def test_a_signal_wakes_whoever_may_wait_for_it(
    runs: Runs, beside: bool, fields: dict[str, object], wakes: bool
) -> None:
    head = put(runs, a_head(**{**PARKED, "inbox": FULL if beside else {}, **fields}))
    assert head.wakes_for("paid") is wakes
    written = runs.deliver(RUN, "m", some_message(), NOW, None)
    assert isinstance(written, Delivered)
    assert written.wakes is wakes
    assert written.head is not None
    times = (0, NOW) if wakes else (head.ready_at, head.wake_at)
    assert (written.head.ready_at, written.head.wake_at) == times
    assert (written.head.inbox_seq, written.head.pending) == (1, head.pending + 1)


@pytest.mark.parametrize("beside", [False, True])
def test_a_delivery_that_should_be_quiet_and_may_not_is_loud(home: Home, beside: bool) -> None:
    """The head that was seen is out of date: meanwhile the run waits for that very signal."""
    seen = held(inbox=FULL if beside else {})
    put(home.runs, seen)
    parked = replace(COMMIT, release=True, ready_at=UNTIL, wake_at=UNTIL, wants="paid")
    home.runs.commit(parked)
    written = home.runs.deliver(RUN, "m", some_message(), NOW, None, None, seen)
    assert isinstance(written, Delivered)
    assert written.wakes
    assert written.head is not None
    assert (written.head.ready_at, written.head.wake_at) == (0, NOW)


def test_a_commit_says_what_the_run_waits_for_or_leaves_that_alone(runs: Runs) -> None:
    put(runs, held(commit_seq=4, wants="old", wants_seq=4))
    commit = replace(COMMIT, commit_seq=4)
    moved = runs.commit(commit)
    assert isinstance(moved, Done)
    assert (moved.head.wants, moved.head.wants_seq) == ("old", 4)
    for number, wants in ((5, "paid"), (6, "")):
        parked = runs.commit(replace(commit, commit_seq=number, wants=wants))
        assert isinstance(parked, Done)
        assert (parked.head.wants, parked.head.wants_seq) == (wants, number + 1)
        assert runs.get(RUN) == parked.head


# --- limits -----------------------------------------------------------------------------------


def test_what_is_in_the_head_and_beside_it_is_limited_together(runs: Runs, room: int) -> None:
    put(runs, held(inbox=FULL, overflow_last=2_000, overflow_count=room - INLINE_MESSAGES - 1))
    head = send(runs, "last")
    assert (head.pending, head.overflow_last) == (room, 2_001)
    check_refused(runs, lambda: runs.deliver(RUN, "more", some_message(), NOW, None))
    check_refused(runs, lambda: runs.deliver(RUN, "more", some_message(), NOW, None, "k"))
    runs.commit(replace(COMMIT, taken=(2_001,)))
    assert send(runs, "more", key="k").pending == room


def test_what_is_refused_never_comes(home: Home, room: int) -> None:
    """Nothing of it stands beside the head that a later delivery could finish."""
    put(home.runs, held(overflow_last=9, overflow_count=room))
    home.runs.deliver(RUN, "refused", some_message(), NOW, None)
    home.runs.commit(replace(COMMIT, taken=(9,)))
    assert send(home.runs, "later").overflow_last == 10
    assert home.runs.overflow(RUN, 10, 10)[10].id == "later"


# --- between two steps ------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("done", [1, 2])
def test_who_finds_a_slot_that_does_not_count_yet_finishes_it(
    home: Home, key: str | None, done: int
) -> None:
    put(home.runs, a_head(inbox=FULL, wants="paid", **PARKED))
    steps = steps_of(home)
    assert steps.put_slot(RUN, 1, Slot("first", some_message(), key)) is None
    if done > 1 and key is not None:
        assert steps.put_key(RUN, key, KeyEntry(1, NOW)) is None
    written = home.runs.deliver(RUN, "second", some_message("other"), NOW + 1, None)
    assert isinstance(written, Delivered)
    assert written.wakes, "the one it finished is waited for"
    assert pending(home.runs, written.head) == [*FULL, "first", "second"]
    assert steps.put_slot(RUN, 1, Slot("x", some_message())) == Slot("first", some_message(), key)
    again = home.runs.deliver(RUN, "first", some_message(), NOW + 2, None, key) if key else None
    assert again is None or again == Delivered(written.head, NOW)


def test_a_key_whose_number_does_not_count_is_not_delivered_yet(home: Home) -> None:
    put(home.runs, a_head(inbox=FULL, **PARKED))
    steps = steps_of(home)
    steps.put_slot(RUN, 1, Slot("m", some_message(), "k"))
    steps.put_key(RUN, "k", KeyEntry(1, NOW))
    written = home.runs.deliver(RUN, "m", some_message(), NOW + 7, None, "k")
    assert isinstance(written, Delivered)
    assert written.at == NOW
    assert pending(home.runs, written.head) == [*FULL, "m"]


@pytest.mark.parametrize("status", ENDED_STATUSES)
def test_a_key_whose_number_will_never_count_is_refused(home: Home, status: Status) -> None:
    put(home.runs, a_head(status=status))
    steps = steps_of(home)
    steps.put_slot(RUN, 1, Slot("m", some_message(), "k"))
    steps.put_key(RUN, "k", KeyEntry(1, NOW))
    check_refused(home.runs, lambda: home.runs.deliver(RUN, "m", some_message(), NOW, None, "k"))


def test_a_slot_whose_key_was_delivered_before_is_void(home: Home) -> None:
    """An older version put the message into the head while this one filled a slot."""
    put(home.runs, held())
    steps = steps_of(home)
    steps.put_slot(RUN, 1, Slot("twin", some_message(), "k"))
    steps.put_key(RUN, "k", KeyEntry(None, NOW - 5))
    written = home.runs.deliver(RUN, "next", some_message(), NOW, None, "k2")
    assert isinstance(written, Delivered)
    head = written.head
    assert head is not None
    assert (head.overflow_last, head.overflow_count, head.inbox_seq) == (2, 1, 1)
    assert pending(home.runs, head) == ["next"]
    assert home.runs.overflow(RUN, 1, 1)[1].void
    again = home.runs.deliver(RUN, "twin", some_message(), NOW, None, "k")
    assert again == Delivered(head, NOW - 5)


def test_who_finds_its_own_key_taken_after_its_slot_answers_with_the_earlier(home: Home) -> None:
    put(home.runs, held())

    class Overtaken:
        """An older version delivers with the key once the slot is there."""

        def __getattr__(self, name: str) -> object:
            return getattr(steps_of(home), name)

        def put_slot(self, run_id: str, number: int, slot: Slot) -> Slot | None:
            met = steps_of(home).put_slot(run_id, number, slot)
            steps_of(home).put_key(run_id, "k", KeyEntry(None, NOW - 5))
            return met

    steps: object = Overtaken()
    written = deliver(steps, RUN, "m", some_message(), NOW, None, "k", None)  # type: ignore[arg-type]  # by name
    assert isinstance(written, Delivered)
    assert written.at == NOW - 5
    assert pending(home.runs, home.runs.get(RUN)) == []


def test_a_slot_counts_once_and_in_its_turn(home: Home) -> None:
    put(home.runs, held())
    steps = steps_of(home)
    for number in (1, 2):
        steps.put_slot(RUN, number, Slot(f"m{number}", some_message()))
    assert isinstance(steps.count(RUN, 2, "paid", NOW, True, 0), Refused)
    counted = steps.count(RUN, 1, "paid", NOW, True, 0)
    assert counted == Done(held(inbox_seq=1, overflow_last=1, overflow_count=1, format=RUN_FORMAT))
    assert steps.count(RUN, 1, "paid", NOW, True, 0) == Refused(counted.head)
    assert steps.count_void(RUN, 1) == Refused(counted.head)
    assert isinstance(steps.count_void(RUN, 2), Done)


@pytest.mark.parametrize("others", [2, 3])
def test_a_delivery_that_others_overtake_again_and_again_gives_up(
    home: Home, others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "TURNS", 3)
    put(home.runs, held(inbox=FULL))
    left = list(range(others))

    class Overtaken:
        def __getattr__(self, name: str) -> object:
            return getattr(steps_of(home), name)

        def put_slot(self, run_id: str, number: int, slot: Slot) -> Slot | None:
            if left:
                home.runs.deliver(run_id, f"other {left.pop()}", some_message(), NOW, None)
            return steps_of(home).put_slot(run_id, number, slot)

    steps: Any = Overtaken()
    if others == 3:
        with pytest.raises(Unavailable, match="changed 3 times"):
            deliver(steps, RUN, "m", some_message(), NOW, None, None, None)
    else:
        assert isinstance(
            deliver(steps, RUN, "m", some_message(), NOW, None, None, None), Delivered
        )
    assert len(pending(home.runs, home.runs.get(RUN))) == INLINE_MESSAGES + 3


@pytest.mark.parametrize("status", ENDED_STATUSES)
def test_nothing_counts_for_a_run_that_has_ended(home: Home, status: Status) -> None:
    head = put(home.runs, a_head(status=status))
    steps = steps_of(home)
    for quiet in (False, True):
        assert steps.count(RUN, 1, "paid", NOW, quiet, 0) == Refused(head)
        assert steps.put_inline(RUN, "m", some_message(), NOW, quiet) == Refused(head)
    assert steps.count_void(RUN, 1) == Refused(head)


def test_only_what_uses_the_overflow_is_of_the_newer_format(runs: Runs) -> None:
    put(runs, held(format=BASE_RUN_FORMAT))
    assert send(runs, "m").format == BASE_RUN_FORMAT
    assert send(runs, "keyed", key="k").format == RUN_FORMAT
    kept = runs.commit(Commit(RUN, TOKEN, 0, b"moved", taken=(1,)))
    assert isinstance(kept, Done)
    assert kept.head.format == RUN_FORMAT
