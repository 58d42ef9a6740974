"""Sub-workflows: a parent, its children, and what passes between them."""

from typing import Any

import pytest

from stepwell_engine import limits
from stepwell_engine.core.run.attempt import Failed, Succeeded
from stepwell_engine.core.run.child import ChildResult, message_of
from stepwell_engine.core.run.status import Status
from stepwell_engine.ports import Refused, Written
from stepwell_engine.service.runs.run_reader import RunReader
from tests.service.families import action, call, family, nap, sleeping_child
from tests.service.world import World, void


def output(world: World, run_id: str) -> bytes | None:
    head = world.head(run_id)
    reader = RunReader(world.runs, world.clock)
    program = world.load("demo", head.workflow, 1)
    records = reader.records(head, world.journal(run_id), program.keys)
    return reader.run_output(head, program, records)


@pytest.mark.parametrize("size", [1, limits.INLINE_MESSAGE - 2, limits.INLINE_MESSAGE + 1, 50_000])
def test_a_childs_output_becomes_its_parents(size: int) -> None:
    world, run_id = family(action(0))
    text = b'"' + b"x" * size + b'"'
    world.outcomes = [Succeeded(text)]
    world.drain()
    assert world.head(run_id).status is Status.SUCCEEDED
    assert output(world, run_id) == text
    (child,) = world.children("child")
    assert (child.parent, child.depth, child.input) == (run_id, 1, b'{"from":"parent"}')
    assert (child.notify_pending, child.wake_at) == (False, None)
    assert world.journal(run_id).records[0].child == child.run_id


def test_a_parent_parks_at_no_cost_while_its_child_sleeps() -> None:
    world, run_id = family(nap(0, 30_000))
    world.turn(run_id)
    head = world.head(run_id)
    assert (head.status, head.lease_token) == (Status.WAITING, None)
    assert head.wake_at == head.ready_at == world.clock.at + 60_000
    world.drain()
    assert world.head(run_id).status is Status.SUCCEEDED


def test_a_failed_child_is_followed_by_a_new_one_within_the_budget() -> None:
    world, run_id = family(action(0))
    world.outcomes = [Failed("once")]
    world.drain()
    assert world.head(run_id).status is Status.SUCCEEDED
    assert [child.status for child in world.children("child")] == ["failed", "succeeded"]
    assert world.journal(run_id).records[0].attempt == 2


def test_a_spent_budget_fails_the_parent_with_the_childs_error() -> None:
    world, run_id = family(action(0))
    world.outcomes = [Failed("once"), Failed("twice")]
    world.drain()
    assert world.head(run_id).status is Status.FAILED
    failure = world.journal(run_id).failure
    assert failure is not None
    assert failure.message.endswith("ended failed: twice")
    assert failure.code == "child_failed"


def test_a_child_that_somebody_cancelled_is_never_retried() -> None:
    world, run_id = family(nap(0, 30_000))
    world.turn(run_id)
    (child,) = world.children("child")
    world.controls.cancel("demo", "child", child.run_id)
    world.drain()
    assert world.head(run_id).status is Status.FAILED
    assert world.journal(run_id).records[0].code == "child_cancelled"
    assert len(world.children("child")) == 1


def test_a_wait_that_times_out_cancels_its_child_before_it_starts_another() -> None:
    world, run_id = family(nap(0, 90_000))
    world.drain()
    assert world.head(run_id).status is Status.FAILED
    assert world.journal(run_id).records[0].code == "timeout"
    assert world.journal(run_id).records[0].attempt == 2
    assert [child.status for child in world.children("child")] == ["cancelled", "cancelled"]
    assert all(not child.notify_pending for child in world.children("child"))


def test_a_child_that_ends_while_it_is_given_up_has_its_result_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, run_id = family(nap(0, 60_000))
    world.turn(run_id)
    (child,) = world.children("child")
    world.turn(child.run_id)
    world.clock.at += 60_000
    cancel = world.runs.cancel

    def after_its_end(target: str, now: int, cascade: bool = False) -> Written:
        monkeypatch.setattr(world.runs, "cancel", cancel)
        world.advance.run(child.run_id, "demo", 60_000)
        written = cancel(target, now, cascade)
        assert isinstance(written, Refused)
        return written

    monkeypatch.setattr(world.runs, "cancel", after_its_end)
    assert world.turn(run_id).status is Status.SUCCEEDED
    assert len(world.children("child")) == 1


@pytest.mark.parametrize(("depth", "status"), [(4, Status.SUCCEEDED), (5, Status.FAILED)])
def test_six_runs_deep_is_the_limit_and_is_not_retried_up_the_chain(
    depth: int, status: Status
) -> None:
    world = World(call(0, "d1"))
    for level in range(1, depth + 1):
        world.add(f"d{level}", call(0, f"d{level + 1}"))
    world.add(f"d{depth + 1}", action(0))
    run_id = world.start()
    world.drain()
    assert world.head(run_id).status is status
    assert [len(world.children(f"d{n}")) for n in range(1, 6)] == [1] * 5
    if status is Status.FAILED:
        assert world.children(f"d{depth + 1}") == []
        failure = world.journal(run_id).failure
        assert failure is not None
        assert failure.code == "depth_exceeded"


def test_an_indirect_cycle_ends_at_the_depth_limit() -> None:
    world = World(call(0, "a"))
    world.add("a", call(0, "b"))
    world.add("b", call(0, "a"))
    run_id = world.start()
    world.drain()
    assert world.head(run_id).status is Status.FAILED
    assert len(world.children("a")) + len(world.children("b")) == 5


def test_a_target_that_does_not_exist_fails_at_once() -> None:
    world = World(call(0, "nowhere"))
    run_id = world.start()
    world.drain()
    record = world.journal(run_id).records[0]
    assert (record.code, record.attempt) == ("unknown_resource", 1)


def test_a_notification_that_was_not_sent_is_found_by_the_tick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, run_id = family(action(0))
    world.turn(run_id)
    (child,) = world.children("child")
    deliver = world.runs.deliver
    monkeypatch.setattr(world.runs, "deliver", die)
    with pytest.raises(KeyboardInterrupt):
        world.turn(child.run_id)
    monkeypatch.setattr(world.runs, "deliver", deliver)
    owing = world.head(child.run_id)
    assert (owing.status, owing.notify_pending, owing.wake_at) == (
        "succeeded",
        True,
        world.clock.at,
    )
    world.turn(child.run_id)
    assert not world.head(child.run_id).notify_pending
    world.turn(run_id)
    assert world.head(run_id).status is Status.SUCCEEDED


def test_a_notification_of_a_cancelled_child_outlives_the_record_of_its_step_in_flight() -> None:
    world, run_id = family(action(0))
    world.turn(run_id)
    (child,) = world.children("child")
    world.during = lambda _: void(world.controls.cancel("demo", "child", child.run_id))
    world.turn(child.run_id)
    head = world.head(child.run_id)
    assert (head.notify_pending, head.lease_token) == (True, None)
    assert head.wake_at is not None
    world.drain()
    assert not world.head(child.run_id).notify_pending
    assert world.head(run_id).status is Status.FAILED


def test_a_parent_that_ended_needs_no_telling() -> None:
    world, run_id = family(nap(0, 10_000))
    world.turn(run_id)
    world.controls.cancel("demo", "orders", run_id)
    world.drain()
    (child,) = world.children("child")
    assert (child.status, child.notify_pending, child.wake_at) == ("succeeded", False, None)
    assert dict(world.head(run_id).inbox) == {}


def die(*_: object) -> None:
    raise KeyboardInterrupt


def test_the_message_of_a_child_that_was_given_up_disturbs_nobody() -> None:
    world = World(call(0, "child"), nap(1, 5_000))
    world.add("child", action(0))
    world.outcomes = [Failed("once")]
    run_id = world.start()
    world.turn(run_id)
    first = world.children("child")[0].run_id
    world.turn(first)
    world.turn(run_id)
    message, _ = message_of(ChildResult(Status.FAILED, world.clock.at, "once"))
    world.runs.deliver(run_id, first, message, world.clock.at, None)
    world.drain()
    assert world.head(run_id).status is Status.SUCCEEDED
    assert dict(world.head(run_id).inbox) == {}


def test_a_child_given_up_by_a_clock_that_is_then_set_back_has_timed_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it would count as cancelled by somebody, which is never tried again."""
    world, run_id = sleeping_child()
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
