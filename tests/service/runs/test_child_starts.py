"""A child whose start is cut short, or meets a cancel: orders that the simulator found."""

import pytest

from stepwell_engine import limits
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.errors import Problem
from tests.service.families import action, call, sleeping_child
from tests.service.world import World, void


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
    world, run_id = sleeping_child()
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
    world, run_id = sleeping_child()
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
    world, run_id = sleeping_child()
    die_before_the_child_is_recorded(world, run_id, monkeypatch)
    world.controls.cancel("demo", "orders", run_id)
    assert world.turn(run_id).lease_token is None
    world.drain()
    (child,) = world.children("child")
    assert (child.status, child.notify_pending) == (Status.CANCELLED, False)


def test_a_crash_between_the_record_and_the_start_of_a_child_starts_that_very_child(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(call(0, "child", timeout=600_000))
    world.add("child", action(0))
    run_id = world.start()
    create = world.runs.create
    monkeypatch.setattr(world.runs, "create", die)
    with pytest.raises(KeyboardInterrupt):
        world.turn(run_id)
    monkeypatch.setattr(world.runs, "create", create)
    recorded = world.journal(run_id).open[0]
    assert recorded.status is StepStatus.PENDING
    world.clock.at = world.head(run_id).lease_expires_at + limits.CLOCK_MARGIN + 1
    world.turn(run_id)
    world.drain()
    assert [child.run_id for child in world.children("child")] == [recorded.child]
    assert world.head(run_id).status is Status.SUCCEEDED
