"""Signals: limits, one delivery for one idempotency key, and a wait that expires meanwhile."""

import pytest

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.run.records import Stored
from stepwell_engine.core.run.status import Status
from stepwell_engine.errors import Problem
from stepwell_engine.ports import Commit, Written
from stepwell_engine.service.runs.controls import Signal
from tests.service.world import START, World, void


def waiting() -> tuple[World, str]:
    world = World(Step(0, "w", Kind.WAIT_FOR_SIGNAL, signal="go", timeout=99_000))
    return world, world.start()


def send(
    world: World, run_id: str, name: str = "other", body: bytes = b"1", key: str | None = None
) -> Signal:
    return world.controls.signal("demo", "orders", run_id, name, body, key)


@pytest.mark.parametrize(("over", "ok"), [(0, True), (1, False)])
def test_the_payload_limit(over: int, ok: bool) -> None:
    world, run_id = waiting()
    body = b'"' + b"x" * (limits.MAX_SIGNAL_PAYLOAD - 2 + over) + b'"'
    if ok:
        send(world, run_id, "go", body)
        assert world.turn(run_id).status is Status.SUCCEEDED
    else:
        with pytest.raises(Problem, match="payload_too_large"):
            send(world, run_id, "go", body)


def test_a_large_payload_is_kept_with_its_size() -> None:
    world, run_id = waiting()
    send(world, run_id, "go", b'"' + b"x" * 998 + b'"')
    world.turn(run_id)
    (record,) = world.journal(run_id).records
    assert isinstance(record.output, Stored)
    assert record.output.size == 1_000


def test_the_limit_of_pending_signals() -> None:
    world, run_id = waiting()
    for number in range(limits.MAX_PENDING_SIGNALS):
        send(world, run_id, key=f"k{number}")
    with pytest.raises(Problem, match="too_many_signals"):
        send(world, run_id)
    assert send(world, run_id, key="k7").run_id == run_id


def test_a_run_that_has_ended_takes_no_signal() -> None:
    world, run_id = waiting()
    world.controls.cancel("demo", "orders", run_id)
    with pytest.raises(Problem, match="run_finished"):
        send(world, run_id)
    with pytest.raises(Problem, match="not_found"):
        world.controls.signal("demo", "elsewhere", run_id, "go", b"1")


def test_a_repeated_key_is_the_same_signal_also_when_it_is_consumed() -> None:
    world, run_id = waiting()
    first = send(world, run_id, "go", b"1", key="once")
    world.clock.at += 5
    assert send(world, run_id, "go", b"2", key="once") == first
    assert first.created_at == START
    assert world.turn(run_id).status is Status.SUCCEEDED
    assert send(world, run_id, "go", b"2", key="once") == first
    with pytest.raises(Problem, match="run_finished"):
        send(world, run_id, "go", b"2", key="twice")


@pytest.mark.parametrize("name", ["", "Go", "a b", "x" * 65, "-a"])
def test_a_signal_needs_a_proper_name(name: str) -> None:
    world, run_id = waiting()
    with pytest.raises(Problem, match="invalid_request"):
        send(world, run_id, name)


@pytest.mark.parametrize(("size", "ok"), [(0, False), (1, True), (200, True), (201, False)])
def test_the_idempotency_key_limit(size: int, ok: bool) -> None:
    world, run_id = waiting()
    if ok:
        assert send(world, run_id, key="k" * size).run_id == run_id
    else:
        with pytest.raises(Problem, match="invalid_request"):
            send(world, run_id, key="k" * size)


def test_the_same_key_under_another_name_is_another_signal() -> None:
    world = World(
        Step(0, "a", Kind.WAIT_FOR_SIGNAL, signal="go", timeout=99_000),
        Step(1, "b", Kind.WAIT_FOR_SIGNAL, signal="on", timeout=99_000),
    )
    run_id = world.start()
    first, second = send(world, run_id, "go", b"1", "k"), send(world, run_id, "on", b"2", "k")
    assert first.id != second.id
    assert world.turn(run_id).status is Status.SUCCEEDED
    assert [one.output for one in world.journal(run_id).records] == [b"1", b"2"]


def wait(ordinal: int, timeout: int = 60_000) -> Step:
    return Step(ordinal, f"s{ordinal}", Kind.WAIT_FOR_SIGNAL, signal="approved", timeout=timeout)


def test_a_signal_that_comes_while_its_wait_expires_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(wait(0))
    run_id = world.start()
    assert world.turn(run_id).status is Status.WAITING
    world.clock.at += 60_000
    commit = world.runs.commit
    messages = [b"7"]

    def after_the_signal(written: Commit) -> Written:
        if messages:
            void(world.controls.signal("demo", "orders", run_id, "approved", messages.pop()))
        return commit(written)

    monkeypatch.setattr(world.runs, "commit", after_the_signal)
    assert world.turn(run_id).status is Status.SUCCEEDED
    assert world.journal(run_id).records[0].output == b"7"
