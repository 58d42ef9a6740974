"""Cancelling a run with all that it started."""

import contextlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from stepwell_engine import limits
from stepwell_engine.core.run.status import Status
from stepwell_engine.errors import Unavailable
from stepwell_engine.ports import Commit, Written
from stepwell_engine.service.worker.sweep import Sweep
from tests.service.families import call, family, nap
from tests.service.world import START, World, void


def die(*_: object) -> None:
    raise KeyboardInterrupt


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

    def down_for_children(
        target: str, now: int, cascade: bool = False, generation: int = 0
    ) -> Written:
        if target != run_id:
            raise Unavailable("down")
        return cancel(target, now, cascade, generation)

    monkeypatch.setattr(world.runs, "cancel", down_for_children)
    world.controls.cancel("demo", "orders", run_id, cascade=True)
    monkeypatch.setattr(world.runs, "cancel", cancel)
    assert [one.status for one in world.children("child")] == [Status.SLEEPING]
    world.drain()
    assert [one.status for one in world.children("child")] == [Status.CANCELLED]


def test_a_cascade_is_answered_although_a_newer_version_has_to_cancel_a_child() -> None:
    world, run_id = family(nap(0, 10_000))
    follow(world, 2)
    (child,) = world.children("child")
    world.runs._heads[child.run_id] = replace(child, format=limits.RUN_FORMAT + 1)
    head = world.controls.cancel("demo", "orders", run_id, cascade=True)
    assert (head.status, head.notify_pending) == (Status.CANCELLED, True)
    world.drain()
    world.runs.known_format = limits.RUN_FORMAT + 1
    assert world.head(run_id).notify_pending
    notify_all(world)
    assert [one.status for one in world.children("child")] == [Status.CANCELLED]
    assert not world.head(run_id).notify_pending


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
