"""Requests that wait for a run: so many at once, and none when the host stops."""

from stepwell_engine.adapters.embedded.waits import BoundedWaits


def test_there_are_so_many_places_and_one_that_is_left_is_free_again() -> None:
    waits = BoundedWaits(2)
    assert [waits.begin() for _ in range(3)] == [True, True, False]
    waits.end()
    assert [waits.begin() for _ in range(2)] == [True, False]


def test_without_a_place_nobody_waits() -> None:
    assert not BoundedWaits(0).begin()


def test_after_stop_nobody_waits_on_or_begins_to() -> None:
    waits = BoundedWaits(2)
    assert waits.begin()
    assert waits.go_on()
    waits.stop()
    assert not waits.go_on()
    assert not waits.begin()
