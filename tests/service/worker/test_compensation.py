"""A failed run is walked backwards by one worker."""

import pytest

from stepwell_engine import limits
from stepwell_engine.core.run.attempt import Attempt, Failed
from stepwell_engine.core.run.status import Status, StepStatus
from tests.service.fanouts import Script, action, drive, fan, output, statuses
from tests.service.world import World, void


def test_compensations_run_backwards_once_each() -> None:
    world = World(action(0), action(1, compensated=False), action(2), action(3))
    script = Script(world)
    script.outcomes = {"s3": [Failed("no", retryable=False)], "compensate:s2": [Failed("busy")]}
    run_id = world.start()
    assert drive(world, run_id) is Status.FAILED
    assert script.seen[4:] == ["compensate:s2", "compensate:s2", "compensate:s0"]
    journal = world.journal(run_id)
    assert journal.failure is not None
    assert (journal.failure.message, journal.compensating) == ("no", -1)
    assert output(world, run_id) == b'"s2"'


def test_a_compensation_that_fails_stops_the_walk_and_is_named() -> None:
    world = World(action(0), action(1), action(2))
    script = Script(world)
    script.outcomes = {
        "s2": [Failed("no", retryable=False)],
        "compensate:s1": [Failed("a"), Failed("b")],
    }
    run_id = world.start()
    assert drive(world, run_id) is Status.FAILED
    journal = world.journal(run_id)
    assert journal.failure is not None
    assert journal.failure.message == 'compensation of step "s1" failed, rollback stopped: b'
    assert (journal.compensating, journal.failure.stuck) == (1, True)
    assert "compensate:s0" not in script.seen


def test_a_run_with_nothing_to_compensate_just_fails() -> None:
    world = World(action(0, compensated=False), action(1))
    Script(world).outcomes = {"s1": [Failed("no", retryable=False)]}
    run_id = world.start()
    assert drive(world, run_id) is Status.FAILED
    assert world.journal(run_id).compensating is None


def test_the_step_ceiling_compensates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_RUN_ATTEMPTS", 1)
    world = World(action(0), action(1))
    script = Script(world)
    run_id = world.start()
    assert drive(world, run_id) is Status.FAILED
    assert script.seen == ["s0"]


def test_a_cancel_in_the_middle_of_compensating_stops_it_there() -> None:
    world = World(action(0), action(1), action(2))
    script = Script(world)
    script.outcomes = {"s2": [Failed("no", retryable=False)]}
    run_id = world.start()

    def cancel(attempt: Attempt) -> None:
        if attempt.step == "compensate:s1":
            void(world.controls.cancel("demo", "orders", run_id))

    world.during = cancel
    assert drive(world, run_id) is Status.CANCELLED
    assert script.seen[-1] == "compensate:s1"
    journal = world.journal(run_id)
    assert journal.compensating == 1
    assert statuses(world, run_id)["compensate:s1"] is StepStatus.SUCCEEDED


def test_a_fanout_that_was_joined_is_compensated_through_all_its_children() -> None:
    world = World(*fan(3), action(5))
    script = Script(world)
    script.outcomes = {"s5": [Failed("no", retryable=False)]}
    run_id = world.start()
    assert drive(world, run_id) is Status.FAILED
    assert script.seen[4:] == ["compensate:s1", "compensate:s2", "compensate:s3"]
    assert world.journal(run_id).position == 2
