"""A deadline is read off the wall clock once, and is monotonic from then on."""

import pytest

from stepwell_engine.adapters.runners.deadline import Deadline
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.limits import HOUR
from tests.adapters.attempts import attempt
from tests.service.world import START, ManualClock


def begun(clock: ManualClock, left: int | None) -> Deadline:
    """Of an attempt with 60 s, which a worker began so that `left` ms of them are left."""
    deadline = None if left is None else START + left
    return Deadline.of(attempt(Kind.WEBHOOK, "", timeout=60_000, deadline=deadline), clock)


@pytest.mark.parametrize("left", [-1, 0])
def test_a_deadline_that_has_come_has_passed(left: int) -> None:
    deadline = begun(ManualClock(), left)
    assert deadline.passed()
    assert (deadline.ms, deadline.seconds) == (1, 0.001)  # what a library can take


def test_what_is_left_is_that_of_the_worker() -> None:
    deadline = begun(ManualClock(), 20_000)
    assert not deadline.passed()
    assert 0 < deadline.ms <= 20_000


def test_without_a_worker_it_is_the_timeout_from_now() -> None:
    assert 20_000 < begun(ManualClock(), None).ms <= 60_000


@pytest.mark.parametrize("jump", [2 * HOUR, -2 * HOUR])
def test_a_jump_of_the_clock_does_not_move_it(jump: int) -> None:
    clock = ManualClock()
    deadline = begun(clock, 30_000)
    clock.at += jump
    assert not deadline.passed()
    assert deadline.ms <= 30_000


def test_a_clock_that_was_set_back_in_between_gives_no_more_than_the_timeout() -> None:
    clock = ManualClock()
    clock.at -= 2 * HOUR
    assert begun(clock, 60_000).ms <= 60_000


def test_the_longest_look_up_is_remembered() -> None:
    deadline = begun(ManualClock(), None)
    for what, seconds in (("a", 1.0), ("b", 3.0), ("c", 2.0)):
        deadline.looked_up(what, seconds)
    assert deadline.longest_lookup == ("b", 3.0)
