"""Cancelling a run, whoever holds it."""

import pytest

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.run.attempt import Failed
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.errors import Problem
from stepwell_engine.service.worker.sweep import Sweep
from tests.service.actions import two_actions
from tests.service.world import World, void


def test_a_lost_answer_to_a_cancel_is_no_conflict() -> None:
    world = two_actions()
    run_id = world.start()
    world.runs.lose_answer_of = ["cancel"]
    assert world.controls.cancel("demo", "orders", run_id).status is Status.CANCELLED
    with pytest.raises(Problem, match="run_finished"):
        world.controls.cancel("demo", "orders", run_id)


def test_a_step_in_flight_at_a_cancel_is_recorded_and_the_run_goes_no_further() -> None:
    world = two_actions()
    run_id = world.start()
    world.during = lambda _: void(world.controls.cancel("demo", "orders", run_id))
    head = world.turn(run_id)
    assert (head.status, head.lease_token, head.wake_at) == (Status.CANCELLED, None, None)
    journal = world.journal(run_id)
    assert [record.status for record in journal.records] == [StepStatus.SUCCEEDED]
    assert journal.position == 0
    assert len(world.attempts) == 1


def test_a_cancelled_run_whose_worker_died_is_closed_when_its_lease_is_over() -> None:
    world = two_actions()
    run_id = world.start()
    world.runs.claim(run_id, "dead", world.clock.at, world.clock.at + limits.LEASE)
    world.controls.cancel("demo", "orders", run_id)
    assert world.turn(run_id).lease_token == "dead"
    world.clock.at += limits.LEASE + limits.CLOCK_MARGIN + 1
    sweep = Sweep(world.runs, world.hints, world.clock, look_ahead=0)
    assert sweep.tick().hints == 1
    head = world.turn(run_id)
    assert (head.lease_token, head.wake_at) == (None, None)
    assert world.journal(run_id).records[0].status is StepStatus.CANCELLED
    assert world.attempts == []


def test_cancelling_a_run_that_nobody_holds_needs_no_second_look() -> None:
    world = two_actions()
    run_id = world.start()
    world.controls.cancel("demo", "orders", run_id)
    assert world.head(run_id).wake_at is None
    assert world.turn(run_id).status is Status.CANCELLED
    assert world.attempts == []


def wait(ordinal: int, timeout: int = 60_000) -> Step:
    return Step(ordinal, f"s{ordinal}", Kind.WAIT_FOR_SIGNAL, signal="approved", timeout=timeout)


def die(_: object) -> None:
    raise KeyboardInterrupt


def test_closing_a_cancelled_run_loses_no_step_of_a_full_journal() -> None:
    text = "".join(f"{n:x}" for n in range(600))
    world = World(Step(0, "s0", Kind.FUNCTION, "f", max_attempts=3, timeout=30_000))
    world.outcomes = [Failed(text)]
    run_id = world.start()
    world.turn(run_id)
    world.clock.at += 2_000
    world.during = die
    with pytest.raises(KeyboardInterrupt):
        world.turn(run_id)
    world.controls.cancel("demo", "orders", run_id)
    world.clock.at = world.head(run_id).lease_expires_at + limits.CLOCK_MARGIN + 1
    assert world.turn(run_id).lease_token is None
    (record,) = world.journal(run_id).records
    assert (record.status, record.error) == (StepStatus.CANCELLED, text)


def test_a_cancelled_run_of_an_unreadable_version_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unreadable(*_: object) -> None:
        raise ValueError("step 0 has no key")

    world = World(wait(0))
    run_id = world.start()
    world.runs.claim(run_id, "dead", world.clock.at, world.clock.at + limits.LEASE)
    world.controls.cancel("demo", "orders", run_id)
    world.clock.at += limits.LEASE + limits.CLOCK_MARGIN + 1
    monkeypatch.setattr(world, "load", unreadable)
    head = world.turn(run_id)
    assert (head.status, head.lease_token, head.wake_at) == (Status.CANCELLED, None, None)
