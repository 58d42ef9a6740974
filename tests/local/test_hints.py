"""Hints in the process: earliest wins, one at a time per run, exact to the millisecond."""

import queue
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell_engine.adapters.process.hints import Hint, ProcessDispatcher
from stepwell_engine.adapters.process.system import SystemClock
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.limits import HOUR, MAX_HINT_DELAY


class Clock:
    """Time that stands still until it is set."""

    def __init__(self) -> None:
        self.at = 1_000

    def now(self) -> int:
        return self.at

    def sleep(self, ms: int) -> None:
        self.at += ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hints(clock: Clock) -> ProcessDispatcher:
    return ProcessDispatcher(clock)


@pytest.fixture
def live() -> Iterator[ProcessDispatcher]:
    """Hints on the machine's clock, for threads."""
    hints = ProcessDispatcher(SystemClock())
    yield hints
    hints.close()


def test_a_hint_is_due_at_its_millisecond_and_not_before(
    hints: ProcessDispatcher, clock: Clock
) -> None:
    hints.hint(about_run("a", "demo"), 250)
    clock.at = 1_249
    assert hints.take_due() is None
    assert hints.next_at() == 1_250
    clock.at = 1_250
    assert hints.take_due() == Hint(1_250, about_run("a", "demo"))
    assert hints.next_at() is None


def test_hints_come_in_the_order_in_which_they_are_due(
    hints: ProcessDispatcher, clock: Clock
) -> None:
    for run_id, delay in (("a", 30), ("b", 10), ("c", 20)):
        hints.hint(about_run(run_id, "demo"), delay)
    clock.at += 30
    assert [hint.subject.id for hint in iter(hints.take_due, None)] == ["b", "c", "a"]


@pytest.mark.parametrize("delays", [(50, 20), (20, 50), (20, 20), (50, 20, 70, 30)])
def test_of_several_hints_for_a_run_the_earliest_stays(
    hints: ProcessDispatcher, clock: Clock, delays: tuple[int, ...]
) -> None:
    for delay in delays:
        hints.hint(about_run("a", "demo"), delay)
    clock.at += 100
    assert hints.take_due() == Hint(1_020, about_run("a", "demo"))
    hints.done(about_run("a", "demo"))
    assert hints.take_due() is None


def test_a_taken_run_is_not_handed_out_again_and_no_hint_for_it_is_lost(
    hints: ProcessDispatcher, clock: Clock
) -> None:
    hints.hint(about_run("a", "demo"))
    assert hints.take_due() is not None
    hints.hint(about_run("a", "demo"), 50)
    hints.hint(about_run("a", "demo"), 10)
    clock.at += 100
    assert hints.next_at() is None
    assert hints.take_due() is None
    hints.done(about_run("a", "demo"))
    assert hints.take_due() == Hint(1_010, about_run("a", "demo"))
    hints.done(about_run("a", "demo"))
    assert hints.take_due() is None


def test_a_taken_run_does_not_hold_up_another(hints: ProcessDispatcher) -> None:
    hints.hint(about_run("a", "demo"))
    hints.hint(about_run("b", "demo"))
    assert hints.take_due() == Hint(1_000, about_run("a", "demo"))
    assert hints.take_due() == Hint(1_000, about_run("b", "demo"))


@pytest.mark.parametrize("delay", [0, MAX_HINT_DELAY])
def test_a_delay_within_the_limit_is_taken(
    hints: ProcessDispatcher, clock: Clock, delay: int
) -> None:
    hints.hint(about_run("a", "demo"), delay)
    assert hints.next_at() == clock.at + delay


@pytest.mark.parametrize("delay", [-1, MAX_HINT_DELAY + 1])
def test_a_delay_past_the_limit_is_refused(hints: ProcessDispatcher, delay: int) -> None:
    with pytest.raises(ValueError, match="0 to 900000 ms"):
        hints.hint(about_run("a", "demo"), delay)
    assert hints.next_at() is None


def test_outdated_entries_do_not_pile_up(hints: ProcessDispatcher) -> None:
    for delay in range(10_000, 0, -1):
        hints.hint(about_run("a", "demo"), delay)
    assert len(hints._heap) < 100
    assert hints.next_at() == 1_001


Move = tuple[str, str, int]
MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("hint"), st.sampled_from("abc"), st.integers(0, 50)),
        st.tuples(st.just("take"), st.just(""), st.just(0)),
        st.tuples(st.just("done"), st.sampled_from("abc"), st.just(0)),
        st.tuples(st.just("pass"), st.just(""), st.integers(1, 50)),
    ),
    max_size=60,
)


@given(MOVES)
def test_it_does_what_a_plain_table_of_hints_would_do(moves: list[Move]) -> None:
    clock = Clock()
    hints = ProcessDispatcher(clock)
    pending: dict[str, int] = {}
    taken: set[str] = set()
    for what, run_id, ms in moves:
        if what == "hint":
            hints.hint(about_run(run_id, "demo"), ms)
            pending[run_id] = min(pending.get(run_id, clock.at + ms), clock.at + ms)
        elif what == "done":
            hints.done(about_run(run_id, "demo"))
            taken.discard(run_id)
        elif what == "pass":
            clock.at += ms
        else:
            free = sorted((at, one) for one, at in pending.items() if one not in taken)
            expected = free[0] if free and free[0][0] <= clock.at else None
            got = hints.take_due()
            assert (got and (got.at, got.subject.id)) == expected
            if expected is not None:
                taken.add(expected[1])
                del pending[expected[1]]


def test_a_thread_that_waits_gets_a_hint_when_it_is_due_and_not_before(
    live: ProcessDispatcher,
) -> None:
    live.hint(about_run("late", "demo"), 40)
    live.hint(about_run("soon", "demo"), 15)
    clock = SystemClock()
    for run_id in ("soon", "late"):
        hint = live.take()
        assert hint is not None
        assert hint.subject.id == run_id
        assert clock.now() >= hint.at


def test_an_earlier_hint_wakes_a_thread_that_waits_for_a_later_one(
    live: ProcessDispatcher,
) -> None:
    live.hint(about_run("later", "demo"), MAX_HINT_DELAY)
    got: list[Hint | None] = []
    threads = [threading.Thread(target=lambda: got.append(live.take())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for run_id in ("a", "b", "c"):
        live.hint(about_run(run_id, "demo"), 5)
    for thread in threads:
        thread.join()
    assert {hint.subject.id for hint in got if hint} == {"a", "b", "c"}


def test_many_threads_take_every_hint_and_never_the_same_run_at_once(
    live: ProcessDispatcher,
) -> None:
    runs = [f"run-{number}" for number in range(40)]
    rounds = 5
    lock = threading.Lock()
    busy: set[str] = set()
    counts = dict.fromkeys(runs, 0)
    doubled: list[str] = []
    finished = threading.Event()

    def work() -> None:
        while (hint := live.take()) is not None:
            with lock:
                if hint.subject.id in busy:
                    doubled.append(hint.subject.id)
                busy.add(hint.subject.id)
                counts[hint.subject.id] += 1
                again = counts[hint.subject.id] < rounds
            if again:
                live.hint(about_run(hint.subject.id, "demo"), counts[hint.subject.id] % 3)
            with lock:
                busy.discard(hint.subject.id)
                if all(count == rounds for count in counts.values()):
                    finished.set()
            live.done(hint.subject)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for run_id in runs:
        live.hint(about_run(run_id, "demo"))
    assert finished.wait(30)
    live.close()
    for thread in threads:
        thread.join()
    assert doubled == []
    assert set(counts.values()) == {rounds}


def test_a_clock_that_jumps_ahead_is_noticed_with_the_next_hint(clock: Clock) -> None:
    hints = ProcessDispatcher(clock)
    hints.hint(about_run("a", "demo"), MAX_HINT_DELAY)
    got: list[Hint | None] = []
    thread = threading.Thread(target=lambda: got.append(hints.take()))
    thread.start()
    clock.at += 2 * MAX_HINT_DELAY
    while not got:  # the tick does so every second
        hints.hint(about_run("a", "demo"))
        thread.join(0.01)
    assert got == [Hint(1_000 + MAX_HINT_DELAY, about_run("a", "demo"))]


def test_closing_sends_every_waiting_thread_home(live: ProcessDispatcher) -> None:
    live.hint(about_run("a", "demo"), MAX_HINT_DELAY)
    got: list[Hint | None] = []
    threads = [threading.Thread(target=lambda: got.append(live.take())) for _ in range(4)]
    for thread in threads:
        thread.start()
    live.close()
    for thread in threads:
        thread.join()
    assert got == [None] * 4
    assert live.take() is None


def wait_for_watcher(hints: ProcessDispatcher) -> None:
    """A thread waits for the next due time."""
    given_up = time.monotonic() + 10
    while hints._watcher is None:
        assert time.monotonic() < given_up
        time.sleep(0.001)


class JumpingClock(SystemClock):
    """The machine's clock, which somebody sets ahead, or which stood still while it slept."""

    ahead = 0

    def now(self) -> int:
        return super().now() + self.ahead


def test_after_a_jump_of_the_clock_new_hints_are_handed_out_at_once() -> None:
    clock = JumpingClock()
    hints = ProcessDispatcher(clock)
    taken: queue.Queue[str] = queue.Queue()

    def work() -> None:
        while (hint := hints.take()) is not None:
            taken.put(hint.subject.id)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    hints.hint(about_run("sleeper", "demo"), 60_000)
    wait_for_watcher(hints)
    clock.ahead = 2 * HOUR
    for name in "abcde":
        hints.hint(about_run(name, "demo"))
    found = {taken.get(timeout=10) for _ in range(6)}
    assert found == {"sleeper", *"abcde"}
    hints.close()
    for thread in threads:
        thread.join(10)


def test_what_is_due_after_a_jump_of_the_clock_is_handed_out_without_a_new_hint() -> None:
    clock = JumpingClock()
    hints = ProcessDispatcher(clock)
    taken: queue.Queue[Hint | None] = queue.Queue()
    thread = threading.Thread(target=lambda: taken.put(hints.take()), daemon=True)
    thread.start()
    hints.hint(about_run("sleeper", "demo"), 60_000)
    wait_for_watcher(hints)
    clock.ahead = 2 * HOUR
    hint = taken.get(timeout=10)
    assert hint is not None
    assert hint.subject.id == "sleeper"
    thread.join(10)
