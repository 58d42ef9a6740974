"""Fan-out and join with one worker and one run."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from stepwell_engine import limits
from stepwell_engine.core.run.attempt import Attempt, Failed, Succeeded
from stepwell_engine.core.run.records import Joined
from stepwell_engine.core.run.status import Status, StepStatus
from tests.service.fanouts import Script, action, drive, fan, output, statuses
from tests.service.world import World, void


def test_a_join_collects_the_outputs_by_key() -> None:
    world = World(*fan(3), action(5, compensated=False))
    script = Script(world)
    script.outcomes = {"s2": [Succeeded()], "s5": [Succeeded()]}
    run_id = world.start()
    assert drive(world, run_id) is Status.SUCCEEDED
    assert output(world, run_id) == b'{"s1":"s1","s2":null,"s3":"s3"}'
    assert script.seen == ["s1", "s2", "s3", "s5"]


def test_two_hundred_children_run_once_each_and_keep_the_head_small() -> None:
    world = World(*fan(200))
    script = Script(world)
    run_id = world.start()
    assert drive(world, run_id) is Status.SUCCEEDED
    assert sorted(script.seen) == sorted(f"s{n}" for n in range(1, 201))
    assert max(len(commit.journal) for commit in world.runs.seen) < limits.PAGE_ABOVE + 300
    assert len(statuses(world, run_id)) == 202


def test_a_child_backs_off_on_its_own_budget_while_its_siblings_go_on() -> None:
    world = World(*fan(3))
    script = Script(world)
    script.outcomes = {"s1": [Failed("busy")]}
    run_id = world.start()
    head = world.turn(run_id)
    assert (head.status, head.ready_at - world.clock.at) == (Status.PENDING, 2_000)
    assert script.seen == ["s1", "s2", "s3"]
    assert drive(world, run_id) is Status.SUCCEEDED
    assert script.seen == ["s1", "s2", "s3", "s1"]


def test_a_child_that_failed_fails_the_join_and_compensates_its_siblings_and_what_was_before() -> (
    None
):
    world = World(action(0), *fan(3, first=1), action(6))
    script = Script(world)
    script.outcomes = {"s3": [Failed("no"), Failed("never")]}
    run_id = world.start()
    assert drive(world, run_id) is Status.FAILED
    journal = world.journal(run_id)
    assert journal.failure is not None
    assert journal.failure.message == 'child "s3" failed: never'
    assert journal.failure.code == "child_failed"
    assert script.seen[-3:] == ["compensate:s2", "compensate:s4", "compensate:s0"]
    assert journal.compensating == -1
    shown = statuses(world, run_id)
    assert shown["join1"] is StepStatus.FAILED
    assert shown["s3"] is StepStatus.FAILED
    assert "compensate:s3" not in shown
    assert "s6" not in shown


def test_children_that_never_started_stay_so_once_one_has_failed() -> None:
    world = World(*fan(20))
    script = Script(world)
    script.outcomes = {"s1": [Failed("no", retryable=False)], "s2": [Failed("busy")]}
    run_id = world.start()
    assert drive(world, run_id) is Status.FAILED
    assert script.seen[:8] == [f"s{n}" for n in range(1, 9)]
    assert set(script.seen[8:]) == {f"compensate:s{n}" for n in range(3, 9)}
    assert statuses(world, run_id)["s2"] is StepStatus.CANCELLED


@pytest.mark.parametrize(("over", "status"), [(0, Status.SUCCEEDED), (1, Status.FAILED)])
def test_the_limit_of_a_joins_output(over: int, status: Status) -> None:
    world = World(*fan(2))
    script = Script(world)
    # {"s1":"x…","s2":"x…"}: 15 bytes beside the text.
    half = limits.MAX_OUTPUT // 2 - 7
    first = b'"' + b"x" * (half - 1) + b'"'
    second = b'"' + b"x" * (half - 2 + over) + b'"'
    script.outcomes = {"s1": [Succeeded(first)], "s2": [Succeeded(second)]}
    run_id = world.start()
    assert drive(world, run_id) is status
    if over:
        failure = world.journal(run_id).failure
        assert failure is not None
        assert failure.code == "output_too_large"
    else:
        assert len(output(world, run_id) or b"") == limits.MAX_OUTPUT


def test_a_cancel_of_a_fanout_records_what_is_in_flight_and_starts_no_more() -> None:
    world = World(*fan(20))
    script = Script(world)
    run_id = world.start()

    def cancel(attempt: Attempt) -> None:
        if attempt.step == "s3":
            void(world.controls.cancel("demo", "orders", run_id))

    world.during = cancel
    assert drive(world, run_id) is Status.CANCELLED
    assert script.seen == [f"s{n}" for n in range(1, 9)]
    shown = statuses(world, run_id)
    assert all(shown[f"s{n}"] is StepStatus.SUCCEEDED for n in range(1, 9))
    assert shown["join0"] is StepStatus.CANCELLED
    assert "s9" not in shown


def test_a_joins_output_is_put_together_when_it_is_read() -> None:
    world = World(*fan(1))
    Script(world)
    run_id = world.start()
    drive(world, run_id)
    records = world.journal(run_id).records
    assert replace(records[-1], output=None) != records[-1]
    assert isinstance(records[-1].output, Joined)


class SlowFirst:
    """A task group whose first task takes longer than all others together."""

    def __init__(self, world: World, longest: int) -> None:
        self._world = world
        self._tasks: list[Callable[[], None]] = []
        self._longest = longest

    def open(self) -> "SlowFirst":
        return self

    def start(self, task: Callable[[], None]) -> None:
        self._tasks.append(task)

    def wait(self, ms: int | None) -> None:
        self._world.clock.at += self._longest
        self._tasks.pop(1 if len(self._tasks) > 1 else 0)()

    def close(self) -> None:
        pass


def test_a_slow_child_does_not_keep_others_from_beginning_when_the_time_is_up() -> None:
    """It keeps the worker at this run anyway."""
    world = World(*fan(12, compensated=False))
    script = Script(world)
    world.advance._task_groups = SlowFirst(world, 1_000)
    world.advance.run(world.start(), "demo", budget=3_000)
    assert len(script.seen) == 12
    assert script.seen[-1] == "s1"
