"""Hints kept in memory."""

import pytest

from stepwell_engine.adapters.memory.hints import Hint, MemoryDispatcher
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.limits import MAX_HINT_DELAY
from tests.contract.heads import NOW


class StoppedClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> int:
        return self.time

    def sleep(self, ms: int) -> None:
        self.time += ms


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


@pytest.fixture
def hints(clock: StoppedClock) -> MemoryDispatcher:
    return MemoryDispatcher(clock)


def test_without_hints_nothing_is_due(hints: MemoryDispatcher) -> None:
    assert hints.pop_due(NOW) is None
    assert hints.next_at() is None


def test_a_hint_is_due_when_its_delay_is_over(hints: MemoryDispatcher, clock: StoppedClock) -> None:
    clock.sleep(5)
    hints.hint(about_run("r", "shop"), 100)
    assert hints.next_at() == NOW + 105
    assert hints.pop_due(NOW + 104) is None
    assert hints.pop_due(NOW + 105) == Hint(NOW + 105, about_run("r", "shop"))
    assert hints.pop_due(NOW + 105) is None


def test_hints_come_earliest_first_and_doubled_ones_twice(hints: MemoryDispatcher) -> None:
    for run_id, delay in (("c", 30), ("a", 10), ("b", 20), ("a", 10)):
        hints.hint(about_run(run_id, "shop"), delay)
    popped = [hints.pop_due(NOW + 30) for _ in range(5)]
    assert [hint and hint.subject.id for hint in popped] == ["a", "a", "b", "c", None]


def test_a_hint_without_a_delay_is_due_at_once(hints: MemoryDispatcher) -> None:
    hints.hint(about_run("r", "shop"))
    assert hints.pop_due(NOW) == Hint(NOW, about_run("r", "shop"))


def test_the_longest_delay_is_taken(hints: MemoryDispatcher) -> None:
    hints.hint(about_run("r", "shop"), MAX_HINT_DELAY)
    assert hints.next_at() == NOW + 900_000


@pytest.mark.parametrize("delay", [-1, MAX_HINT_DELAY + 1])
def test_a_delay_past_the_limits_is_refused(hints: MemoryDispatcher, delay: int) -> None:
    with pytest.raises(ValueError, match=f"0 to 900000 ms, not {delay}"):
        hints.hint(about_run("r", "shop"), delay)
    assert hints.next_at() is None
