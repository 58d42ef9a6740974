"""Which entries a tick hints: what is to come, and what is overdue at which ages."""

import pytest

from stepwell_engine.limits import MAX_HINT_DELAY, MINUTE, TICK
from stepwell_engine.service.worker.sweep import Sweep, ages_passed
from tests.service.actions import two_actions
from tests.service.world import World

LOOK_AHEAD = 150_000


def swept(world: World) -> Sweep:
    return Sweep(world.runs, world.hints, world.clock, LOOK_AHEAD)


def due_at(world: World) -> int:
    """A run whose hint is lost: when it is due."""
    run_id = world.start()
    list(world.delays())
    wake_at = world.head(run_id).wake_at
    assert wake_at is not None
    return wake_at


def hinted(world: World, now: int, since: int | None) -> list[int]:
    world.clock.at = now
    swept(world).tick(since=since)
    return list(world.delays())


@pytest.mark.parametrize(
    ("age", "passed"),
    [
        *((-1, 0), (0, 1), (MINUTE - 1, 1), (MINUTE, 2), (3 * MINUTE, 4), (4 * MINUTE - 1, 4)),
        *((4 * MINUTE, 5), (8 * MINUTE - 1, 5), (8 * MINUTE, 6), (60 * MINUTE, 19)),
    ],
)
def test_what_is_overdue_is_hinted_each_minute_and_from_the_fourth_on_every_four(
    age: int, passed: int
) -> None:
    assert ages_passed(age) == passed


def test_a_tick_hints_what_passed_an_age_since_the_last_one() -> None:
    world = two_actions()
    due = due_at(world)
    assert hinted(world, due + 5 * MINUTE, due + 4 * MINUTE) == []
    assert hinted(world, due + 8 * MINUTE, due + 8 * MINUTE - 1) == [0]
    assert hinted(world, due + 8 * MINUTE + 1, due + 8 * MINUTE) == []
    assert hinted(world, due + 30 * MINUTE, due + 9 * MINUTE) == [0]


def test_the_first_tick_of_all_hints_everything() -> None:
    world = two_actions()
    due = due_at(world)
    assert hinted(world, due + 5 * MINUTE, None) == [0]


def test_a_clock_that_was_set_back_hints_everything() -> None:
    world = two_actions()
    due = due_at(world)
    assert hinted(world, due + 5 * MINUTE, due + 6 * MINUTE) == [0]


def test_what_is_to_come_is_hinted_when_it_comes_into_view_and_last() -> None:
    world = two_actions()
    due = due_at(world)
    last = due - LOOK_AHEAD - 1
    assert hinted(world, due - LOOK_AHEAD, last) == [LOOK_AHEAD]
    assert hinted(world, due - TICK - 1, due - LOOK_AHEAD) == []
    assert hinted(world, due - TICK, due - 2 * TICK) == [TICK]


def test_a_tick_that_looks_further_than_a_hint_is_delayed_is_refused() -> None:
    world = two_actions()
    Sweep(world.runs, world.hints, world.clock, MAX_HINT_DELAY)
    with pytest.raises(ValueError, match="looks at most 900000 ms ahead"):
        Sweep(world.runs, world.hints, world.clock, MAX_HINT_DELAY + 1)
