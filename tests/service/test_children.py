"""Sub-workflows: a parent, its children, and what passes between them."""

import contextlib
from collections.abc import Callable

import pytest

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.run.attempt import Failed, Succeeded
from stepwell_engine.core.run.child import ChildResult, message_of
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.errors import Unavailable
from stepwell_engine.ports import Commit, Refused, Written
from stepwell_engine.service.runs.records import RunReader
from stepwell_engine.service.worker.sweep import Sweep
from tests.service.world import START, World, void


def call(ordinal: int, target: str, attempts: int = 2, timeout: int = 60_000) -> Step:
    return Step(
        ordinal,
        f"s{ordinal}",
        Kind.SUBWORKFLOW,
        target,
        payload={"from": "parent"},
        max_attempts=attempts,
        timeout=timeout,
    )


def action(ordinal: int) -> Step:
    return Step(ordinal, f"s{ordinal}", Kind.FUNCTION, "f", max_attempts=1, timeout=30_000)


def nap(ordinal: int, ms: int) -> Step:
    return Step(ordinal, f"s{ordinal}", Kind.SLEEP, sleep_for=ms)


def family(*child: Step) -> tuple[World, str]:
    world = World(call(0, "child"))
    world.add("child", *child)
    return world, world.start()


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


@pytest.mark.parametrize(("cascade", "status"), [(False, "succeeded"), (True, "cancelled")])
def test_cancelling_a_parent_stops_its_child_only_if_asked(cascade: bool, status: str) -> None:
    world, run_id = family(call(0, "grandchild"))
    world.add("grandchild", nap(0, 10_000))
    follow(world, 3)
    world.controls.cancel("demo", "orders", run_id, cascade)
    world.drain()
    assert [one.status for one in world.children("child")] == [status]
    assert [one.status for one in world.children("grandchild")] == [status]


@pytest.mark.parametrize("survived", [0, 1, 2, 3, 4])
def test_a_cascade_that_a_crash_cuts_short_reaches_every_child_all_the_same(
    survived: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`survived` calls of the store are made after the first cancel, then the process is gone."""
    world, run_id = family(call(0, "grandchild"))
    world.add("grandchild", nap(0, 10_000))
    follow(world, 3)
    left = survived + 1

    def counted(method: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                die()
            return method(*arguments, **named)

        return call

    with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt):
        for name in ("cancel", "deliver", "mark_notified"):
            patched.setattr(world.runs, name, counted(getattr(world.runs, name)))
        world.controls.cancel("demo", "orders", run_id, cascade=True)
    void(list(world.delays()))
    notify_all(world)
    family_of = (world.head(run_id), *world.children("child"), *world.children("grandchild"))
    assert [(one.status, one.notify_pending) for one in family_of] == [
        (Status.CANCELLED, False)
    ] * 3


def test_a_cascade_that_the_store_does_not_carry_out_at_once_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, run_id = family(nap(0, 10_000))
    follow(world, 2)
    cancel = world.runs.cancel

    def down_for_children(target: str, now: int, cascade: bool = False) -> Written:
        if target != run_id:
            raise Unavailable("down")
        return cancel(target, now, cascade)

    monkeypatch.setattr(world.runs, "cancel", down_for_children)
    world.controls.cancel("demo", "orders", run_id, cascade=True)
    monkeypatch.setattr(world.runs, "cancel", cancel)
    assert [one.status for one in world.children("child")] == [Status.SLEEPING]
    world.drain()
    assert [one.status for one in world.children("child")] == [Status.CANCELLED]


def follow(world: World, hints: int) -> None:
    """The next hints, one after the other."""
    for _ in range(hints):
        hint = world.hints.pop_due(world.clock.at)
        assert hint is not None
        world.turn(hint.subject.id)


def notify_all(world: World) -> None:
    """What the tick and its hints do, without any other hint."""
    sweep = Sweep(world.runs, world.hints, world.clock, 0)
    for _ in range(5):
        sweep.tick()
        follow(world, len(list(world.runs.due(world.clock.at, None, 10)[0])))


def test_a_child_that_is_given_up_is_cancelled_with_all_that_it_started() -> None:
    """Else a retry would leave two grandchildren running."""
    world = World(call(0, "child", attempts=2, timeout=5_000))
    world.add("child", call(0, "grandchild", timeout=600_000))
    world.add("grandchild", nap(0, 60_000))
    run_id = world.start()
    world.drain()
    assert world.head(run_id).status is Status.FAILED
    given_up = [one.ended_at or 0 for one in world.children("child")]
    assert sorted(one.ended_at or 0 for one in world.children("grandchild")) == sorted(given_up)
    assert START + 5_000 in given_up


def test_all_that_a_child_started_is_cancelled_before_its_timeout_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(call(0, "child", attempts=2, timeout=5_000))
    world.add("child", call(0, "grandchild", timeout=600_000))
    world.add("grandchild", nap(0, 60_000))
    run_id = world.start()
    follow(world, 3)
    world.clock.at += 5_000
    commit = world.runs.commit
    seen: list[Status] = []

    def watched(written: Commit) -> Written:
        if written.run_id == run_id:
            seen.append(world.children("grandchild")[0].status)
        return commit(written)

    monkeypatch.setattr(world.runs, "commit", watched)
    world.turn(run_id)
    assert seen
    assert set(seen) == {Status.CANCELLED}


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


def test_a_debt_that_was_not_paid_is_found_by_the_tick(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_debt_of_a_cancelled_child_outlives_the_record_of_its_step_in_flight() -> None:
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


def test_the_mail_of_a_child_that_was_given_up_disturbs_nobody() -> None:
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
