"""Requests that wait for a run: so many at once, and none when the host stops."""

from stepwell_engine.adapters.process.long_poll import BoundedLongPollSlots


def test_there_are_so_many_places_and_one_that_is_left_is_free_again() -> None:
    slots = BoundedLongPollSlots(2)
    assert [slots.acquire() for _ in range(3)] == [True, True, False]
    slots.release()
    assert [slots.acquire() for _ in range(2)] == [True, False]


def test_without_a_place_nobody_waits() -> None:
    assert not BoundedLongPollSlots(0).acquire()


def test_after_stop_nobody_waits_on_or_begins_to() -> None:
    slots = BoundedLongPollSlots(2)
    assert slots.acquire()
    assert slots.may_wait()
    slots.stop()
    assert not slots.may_wait()
    assert not slots.acquire()
