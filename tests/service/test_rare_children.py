"""Orders of events between parent and child that the simulator found: each was a defect once."""

from typing import Any

import pytest

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.errors import Problem
from stepwell_engine.ports import Written
from tests.service.world import World, void


def family() -> tuple[World, str]:
    world = World(Step(0, "s0", Kind.SUBWORKFLOW, "child", max_attempts=2, timeout=600_000))
    world.add("child", Step(0, "s0", Kind.SLEEP, sleep_for=300_000))
    return world, world.start()


def die(*_: object) -> None:
    raise KeyboardInterrupt


def die_before_the_child_is_recorded(
    world: World, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> Head:
    """The child was started; its parent's worker is gone, and so is its lease."""
    hint = world.hints.hint
    monkeypatch.setattr(world.hints, "hint", die)
    with pytest.raises(KeyboardInterrupt):
        world.turn(run_id)
    monkeypatch.setattr(world.hints, "hint", hint)
    world.clock.at = world.head(run_id).lease_expires_at + limits.CLOCK_MARGIN + 1
    (child,) = world.children("child")
    assert world.journal(run_id).open[0].status is StepStatus.PENDING
    return child


def test_a_child_that_runs_is_waited_for_although_its_workflow_was_disabled_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, run_id = family()
    child = die_before_the_child_is_recorded(world, run_id, monkeypatch)

    def disabled(*_: object) -> int:
        raise Problem("workflow_disabled", "child is disabled")

    monkeypatch.setattr(world, "enabled", disabled)
    assert world.turn(run_id).status is Status.WAITING
    world.turn(child.run_id)
    world.drain()
    assert [one.run_id for one in world.children("child")] == [child.run_id]
    assert world.head(run_id).status is Status.SUCCEEDED


@pytest.mark.parametrize("cascade", [True, False])
def test_a_child_that_is_started_while_its_parent_is_cancelled_is_stopped(
    cascade: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, run_id = family()
    create = world.runs.create

    def after_the_cancel(head: Head, blobs: object) -> object:
        void(world.controls.cancel("demo", "orders", run_id, cascade))
        return create(head)

    monkeypatch.setattr(world.runs, "create", after_the_cancel)
    assert world.turn(run_id).status is Status.CANCELLED
    world.drain()
    (child,) = world.children("child")
    assert (child.status, child.notify_pending) == (Status.CANCELLED, False)


def test_a_child_whose_parents_worker_died_before_the_cancel_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, run_id = family()
    die_before_the_child_is_recorded(world, run_id, monkeypatch)
    world.controls.cancel("demo", "orders", run_id)
    assert world.turn(run_id).lease_token is None
    world.drain()
    (child,) = world.children("child")
    assert (child.status, child.notify_pending) == (Status.CANCELLED, False)


def test_a_child_given_up_by_a_clock_that_is_then_set_back_has_timed_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it would count as cancelled by somebody, which is never tried again."""
    world, run_id = family()
    world.turn(run_id)
    extend = world.runs.extend

    def set_back(*given: Any) -> Written:
        world.clock.at -= 1_000
        return extend(*given)

    monkeypatch.setattr(world.runs, "extend", set_back)
    monkeypatch.setattr("stepwell_engine.service.worker.leased_run.CHILD_CALLS", 2 * limits.LEASE)
    world.clock.at = world.head(run_id).ready_at
    assert world.turn(run_id).status is Status.PENDING
    assert world.journal(run_id).open[0].code == "timeout"
    assert [child.status for child in world.children("child")] == [Status.CANCELLED]
