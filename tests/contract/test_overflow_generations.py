"""Slots of an overflow that a run left uncounted when it ended are void once it is revived."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from stepwell_engine.adapters.delivery import KeyEntry, deliver
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.inbox import Slot
from stepwell_engine.core.run.status import Status
from stepwell_engine.ports import Commit, Delivered, Done, Refused, Revival
from tests.contract.heads import NOW, RUN, TOKEN, held, put, some_message
from tests.contract.homes import Home
from tests.contract.inboxes import pending, steps_of

MESSAGE = some_message()


def put_uncounted(home: Home, number: int, message_id: str, key: str | None = None) -> None:
    """As a sender that is gone before it counts."""
    steps_of(home).put_slot(RUN, number, Slot(message_id, MESSAGE, key))
    if key is not None:
        steps_of(home).put_key(RUN, key, KeyEntry(number, MESSAGE.at))


def end_and_revive(home: Home) -> Head:
    """The run fails, and goes on in another generation."""
    head = home.runs.get(RUN)
    assert head is not None
    end = Commit(
        RUN, TOKEN, head.commit_seq, b"over", status=Status.FAILED, release=True, wake_at=None
    )
    assert isinstance(home.runs.commit(end), Done)
    written = home.runs.revive(Revival(RUN, head.generation, head.commit_seq + 1, b"again", NOW))
    assert isinstance(written, Done)
    return written.head


def send(home: Home, message_id: str, at: int, key: str | None = None) -> Delivered | Refused:
    message = replace(MESSAGE, at=at)
    return home.runs.deliver(RUN, message_id, message, NOW, None, key)


def delivered(home: Home) -> list[str]:
    return pending(home.runs, home.runs.get(RUN))


@pytest.mark.parametrize("key", [None, "k"])
def test_what_was_not_counted_before_the_end_is_void_after_it(home: Home, key: str | None) -> None:
    put(home.runs, held())
    put_uncounted(home, 1, "m1", key)
    end_and_revive(home)
    assert isinstance(send(home, "m2", NOW, "another"), Delivered)
    assert delivered(home) == ["m2"]
    assert home.runs.overflow(RUN, 1, 2)[1].void


def test_a_key_of_a_slot_that_is_void_so_delivers_anew_and_once(home: Home) -> None:
    put(home.runs, held())
    put_uncounted(home, 1, "m1", "k")
    end_and_revive(home)
    for at in (NOW + 7, NOW + 8):
        written = send(home, "m1", at, "k")
        assert isinstance(written, Delivered)
        assert written.at == NOW + 7
    assert delivered(home) == ["m1"]


def test_a_key_that_was_delivered_before_the_end_is_so_after_it(home: Home) -> None:
    put(home.runs, held())
    send(home, "m1", NOW + 1, "k")
    end_and_revive(home)
    written = send(home, "m1", NOW + 9, "k")
    assert isinstance(written, Delivered)
    assert written.at == NOW + 1
    assert delivered(home) == ["m1"]


def test_a_key_whose_message_is_consumed_is_delivered_for_ever(home: Home) -> None:
    put(home.runs, held())
    send(home, "m1", NOW + 1, "k")
    home.runs.commit(Commit(RUN, TOKEN, 0, b"taken", taken=(1,)))
    end_and_revive(home)
    written = send(home, "m1", NOW + 9, "k")
    assert isinstance(written, Delivered)
    assert written.at == NOW + 1
    head = home.runs.get(RUN)
    assert head is not None
    assert (head.overflow_count, head.overflow_last) == (0, 1)


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("step", ["put_slot", "put_key", "count"])
def test_a_sender_that_a_revival_overtakes_delivers_to_the_new_generation(
    home: Home, step: str, key: str | None
) -> None:
    put(home.runs, held(inbox={f"old{n}": MESSAGE for n in range(4)}))
    meanwhile(home, step, lambda: end_and_revive(home), key)
    assert delivered(home)[4:] == ["m1"]


@pytest.mark.parametrize("step", ["put_slot", "put_key", "count", "key_entry"])
def test_two_senders_with_one_key_deliver_once_across_a_revival(home: Home, step: str) -> None:
    put(home.runs, held())
    put_uncounted(home, 1, "m1", "k")

    def another() -> None:
        end_and_revive(home)
        send(home, "m1", NOW + 5, "k")

    meanwhile(home, step, another, "k")
    assert delivered(home) == ["m1"]


def test_a_key_is_not_taken_for_delivered_since_its_slot_was_passed_over(home: Home) -> None:
    put(home.runs, held())
    put_uncounted(home, 1, "m1", "k")

    def another() -> None:
        end_and_revive(home)
        send(home, "m2", NOW + 5)  # passes over the slot

    meanwhile(home, "count", another, "k")
    assert sorted(delivered(home)) == ["m1", "m2"]


def meanwhile(home: Home, step: str, other: Callable[[], object], key: str | None) -> None:
    """A sender stands still before a step of its delivery, while something else happens."""
    left = [other]

    class Overtaken:
        def __getattr__(self, name: str) -> object:
            found = getattr(steps_of(home), name)

            def stalls(*arguments: object) -> object:
                if name == step and left:
                    left.pop()()
                return found(*arguments)

            return stalls

    steps: object = Overtaken()
    head = home.runs.get(RUN)
    deliver(steps, RUN, "m1", MESSAGE, NOW, None, key, head)  # type: ignore[arg-type]  # by name
