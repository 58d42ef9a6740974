"""A child whose start is cut short, or meets a cancel: orders that the simulator found."""

import pytest

from stepwell_engine import limits
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.errors import NewerFormat, Problem
from tests.service.families import action, call, sleeping_child
from tests.service.world import World, void


def die(*_: object) -> None:
    raise KeyboardInterrupt


def die_before_the_child_is_recorded(
    world: World, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> Head:
    """The child was created; its parent's worker is gone, and so is its lease."""
    create = world.runs.create

    def create_and_die(head: Head, blobs: object) -> None:
        create(head)
        die()

    monkeypatch.setattr(world.runs, "create", create_and_die)
    with pytest.raises(KeyboardInterrupt):
        world.turn(run_id)
    monkeypatch.setattr(world.runs, "create", create)
    world.clock.at = world.head(run_id).lease_expires_at + limits.CLOCK_MARGIN + 1
    (child,) = world.children("child")
    assert world.journal(run_id).open[0].status is StepStatus.PENDING
    return child


def test_a_child_whose_workflow_was_disabled_before_it_was_waited_for_never_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, run_id = sleeping_child()
    child = die_before_the_child_is_recorded(world, run_id, monkeypatch)

    def disabled(*_: object) -> int:
        raise Problem("workflow_disabled", "child is disabled")

    with monkeypatch.context() as patch:
        patch.setattr(world, "enabled", disabled)
        assert world.turn(run_id).status is Status.PENDING
    assert world.turn(child.run_id).status is Status.CANCELLED
    assert world.journal(child.run_id).records[0].started_at is None
    world.drain()
    ends = [one.status for one in world.children("child")]
    assert ends == [Status.CANCELLED, Status.SUCCEEDED]
    assert world.head(run_id).status is Status.SUCCEEDED


def test_a_child_begins_when_its_parent_has_recorded_that_it_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, run_id = sleeping_child()
    child = die_before_the_child_is_recorded(world, run_id, monkeypatch)
    early = world.turn(child.run_id)
    assert (early.status, early.lease_token, early.journal) == (Status.PENDING, None, b"")
    assert early.ready_at > world.clock.at
    assert world.turn(run_id).status is Status.WAITING
    world.clock.at = early.ready_at
    assert world.turn(child.run_id).status is Status.SLEEPING


def test_a_child_whose_parent_is_gone_never_begins() -> None:
    world = World()
    world.add("child", action(0))
    world.runs.create(
        Head("orphan", "demo", "child", 1, world.clock.at, wake_at=world.clock.at, parent="gone")
    )
    head = world.turn("orphan")
    assert (head.status, head.lease_token) == (Status.CANCELLED, None)
    assert world.attempts == []


def test_a_child_of_a_parent_of_a_newer_format_is_left_to_a_newer_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, run_id = sleeping_child()
    child = die_before_the_child_is_recorded(world, run_id, monkeypatch)
    get = world.runs.get

    def newer(asked: str) -> Head | None:
        if asked == run_id:
            raise NewerFormat(f"run {run_id}", 9, 2)
        return get(asked)

    monkeypatch.setattr(world.runs, "get", newer)
    head = world.turn(child.run_id)
    assert (head.status, head.lease_token, head.lost_leases) == (Status.PENDING, None, 0)


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
