"""A newer version of the engine writes to a run that this one holds."""

import logging
from collections import Counter
from dataclasses import replace

import pytest

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.run.attempt import Attempt, Failed, Succeeded
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.errors import NewerFormat, Unavailable
from stepwell_engine.ports import Commit, Written
from stepwell_engine.service.worker.process import WorkerProcess
from tests.service.fanouts import Script, drive, fan, statuses
from tests.service.world import START, World, void

NEWER = limits.RUN_FORMAT + 1


def actions(count: int = 2, timeout: int = 30_000) -> World:
    steps = (Step(n, f"s{n}", Kind.FUNCTION, "f", timeout=timeout) for n in range(count))
    return World(*steps)


def outgrow(world: World, run_id: str, **fields: object) -> None:
    """A newer version writes to the run."""
    head = world.runs._heads[run_id]
    world.runs._heads[run_id] = replace(head, **{"format": NEWER, **fields})  # type: ignore[arg-type]


def upgrade(world: World) -> None:
    """From now on the engine is the newer version."""
    world.runs.known_format = NEWER


def stored(world: World, run_id: str) -> Head:
    """A head, whatever its format."""
    return world.runs._heads[run_id]


def visit(world: World, run_id: str) -> Head:
    """A worker looks at the run."""
    world.advance.run(run_id, "demo", 60_000)
    return stored(world, run_id)


def test_the_outcome_in_hand_is_recorded_and_the_run_let_go() -> None:
    world = actions()
    run_id = world.start()
    world.during = lambda attempt: outgrow(world, run_id) if attempt.step == "s0" else None
    head = visit(world, run_id)
    assert (head.status, head.lease_token, head.format) == (Status.PENDING, None, NEWER)
    assert (head.ready_at, head.wake_at, head.lost_leases) == (0, world.clock.at, 0)
    assert [one.step for one in world.attempts] == ["s0"]
    before = replace(head)
    assert visit(world, run_id) == before  # no lease is taken
    upgrade(world)
    assert world.turn(run_id).status is Status.SUCCEEDED
    assert [one.step for one in world.attempts] == ["s0", "s1"]


def test_a_last_outcome_is_recorded_and_a_newer_worker_ends_the_run() -> None:
    world = actions(1)
    run_id = world.start()
    world.during = lambda _: outgrow(world, run_id)
    assert visit(world, run_id).status is Status.PENDING
    upgrade(world)
    assert world.turn(run_id).status is Status.SUCCEEDED
    assert len(world.attempts) == 1


def test_a_run_that_sleeps_again_is_not_parked() -> None:
    world = World(Step(0, "s0", Kind.SLEEP, sleep_for=1_000))
    run_id = world.start()
    write = world.runs.commit

    def late(commit: Commit) -> Written:
        outgrow(world, run_id)
        return write(commit)

    world.runs.commit = late  # type: ignore[method-assign]
    head = visit(world, run_id)
    assert (head.status, head.journal, head.lease_token) == (Status.PENDING, b"", None)
    assert head.wake_at == START


def test_attempts_in_flight_are_waited_for() -> None:
    world = World(*fan(3))
    script = Script(world)
    script.outcomes = {"s2": [Failed("busy")]}
    run_id = world.start()

    def raised(attempt: Attempt) -> None:
        if attempt.step == "s1":
            outgrow(world, run_id)

    world.during = raised
    head = visit(world, run_id)
    assert (head.lease_token, head.lost_leases) == (None, 0)
    upgrade(world)
    shown = statuses(world, run_id)
    assert [shown[key] for key in ("s1", "s2", "s3")] == [
        StepStatus.SUCCEEDED,
        StepStatus.RETRYING,
        StepStatus.SUCCEEDED,
    ]


def test_a_failed_child_is_seen_by_who_goes_on_although_the_journal_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What follows from it is decided by that worker: so it must not be on a page."""
    monkeypatch.setattr(limits, "PAGE_ABOVE", 0)
    world = World(*fan(2))
    script = Script(world)
    script.outcomes = {"s1": [Failed("no", retryable=False)], "s2": [Failed("busy")]}
    run_id = world.start()
    world.during = lambda attempt: outgrow(world, run_id) if attempt.step == "s2" else None
    void(visit(world, run_id))
    upgrade(world)
    assert drive(world, run_id) is Status.FAILED
    assert script.seen == ["s1", "s2"]


def test_a_lease_that_cannot_be_extended_is_let_go() -> None:
    world = actions(2, timeout=90_000)
    run_id = world.start()
    world.during = lambda _: outgrow(world, run_id)
    assert visit(world, run_id).lease_token is None
    assert len(world.attempts) == 1


def test_a_run_that_was_cancelled_meanwhile_keeps_its_lease_for_who_closes_it() -> None:
    world = actions()
    run_id = world.start()

    def raised(_: Attempt) -> None:
        void(world.controls.cancel("demo", "orders", run_id))
        outgrow(world, run_id)

    world.during = raised
    head = visit(world, run_id)
    assert (head.status, head.format) == (Status.CANCELLED, NEWER)
    assert head.lease_token is not None
    assert head.wake_at == head.lease_expires_at
    upgrade(world)
    assert statuses(world, run_id)["s0"] is StepStatus.SUCCEEDED
    world.clock.at = head.lease_expires_at + limits.CLOCK_MARGIN + 1
    head = world.turn(run_id)
    assert (head.lease_token, head.wake_at) == (None, None)
    assert len(world.attempts) == 1


def test_what_a_cancelled_run_was_at_is_recorded_once_although_the_journal_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "PAGE_ABOVE", 0)
    world = actions(1)
    run_id = world.start()

    def raised(_: Attempt) -> None:
        void(world.controls.cancel("demo", "orders", run_id))
        outgrow(world, run_id)

    world.during = raised
    head = visit(world, run_id)
    upgrade(world)
    world.clock.at = head.lease_expires_at + limits.CLOCK_MARGIN + 1
    assert world.turn(run_id).lease_token is None
    assert statuses(world, run_id) == {"s0": StepStatus.SUCCEEDED}


@pytest.mark.parametrize("cancelled", [False, True])
def test_an_unanswered_letting_go_is_not_built_on(
    cancelled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = actions()
    run_id = world.start()

    def raised(_: Attempt) -> None:
        if cancelled:
            void(world.controls.cancel("demo", "orders", run_id))
        outgrow(world, run_id)

    let_go, left = world.runs.let_go, [Unavailable("no answer")]

    def unanswered(commit: Commit) -> bool:
        done = let_go(commit)
        if done and left:
            raise left.pop()
        return done

    world.during = raised
    monkeypatch.setattr(world.runs, "let_go", unanswered)
    head = visit(world, run_id)
    assert head.commit_seq == 1
    upgrade(world)
    assert statuses(world, run_id) == {"s0": StepStatus.SUCCEEDED}
    assert world.journal(run_id).position == (0 if cancelled else 1)


def test_a_write_of_its_own_that_was_not_answered_is_built_on() -> None:
    world = actions()
    run_id = world.start()
    write = world.runs.commit

    def unanswered(commit: Commit) -> Written:
        void(write(commit))
        outgrow(world, run_id)
        raise Unavailable("no answer")

    def first(commit: Commit) -> Written:
        world.runs.commit = write  # type: ignore[method-assign]
        return unanswered(commit)

    world.runs.commit = first  # type: ignore[method-assign]
    head = visit(world, run_id)
    assert (head.lease_token, head.commit_seq, head.lost_leases) == (None, 2, 0)
    upgrade(world)
    assert statuses(world, run_id)["s0"] is StepStatus.SUCCEEDED


def test_a_lost_lease_is_not_written_to() -> None:
    world = actions()
    run_id = world.start()
    world.during = lambda _: outgrow(world, run_id, lease_token="another")
    head = visit(world, run_id)
    assert (head.lease_token, head.journal) == ("another", b"")


def test_a_run_beside_it_that_is_newer_has_it_put_back_for_a_while() -> None:
    """Ready at once, older workers would take it again and again."""
    child = Step(0, "s0", Kind.SUBWORKFLOW, "other", timeout=1_000)
    world = World(child)
    world.add("other", Step(0, "c0", Kind.WAIT_FOR_SIGNAL, signal="go", timeout=600_000))
    run_id = world.start()
    void(world.turn(run_id))
    name = next(one for one in world.runs._heads if one != run_id)
    outgrow(world, name)
    world.clock.at += 2_000
    head = visit(world, run_id)
    assert (head.lease_token, head.lost_leases) == (None, 0)
    assert head.ready_at == head.wake_at == world.clock.at + limits.LEASE
    upgrade(world)
    world.clock.at = head.ready_at
    void(world.turn(run_id))
    assert world.head(name).status is Status.CANCELLED


def test_a_run_left_to_newer_workers_is_counted_each_time_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    counts: Counter[str] = Counter()
    process = WorkerProcess(count=lambda name: counts.update([name]))
    error = NewerFormat("run r", 3, 2)
    with caplog.at_level(logging.WARNING):
        for run_id in ("r", "r", "s"):
            process.met_newer(run_id, error)
    assert counts == {"NewerFormats": 3}
    assert [record.args for record in caplog.records] == [("r", error), ("s", error)]


def test_what_was_logged_is_remembered_of_so_many_runs() -> None:
    process = WorkerProcess()
    for number in range(10_001):
        process.met_newer(str(number), NewerFormat("run", 3, 2))
    assert process.newer == {"10000"}


def test_an_answer_that_succeeded_anyway_is_taken() -> None:
    world = actions(1)
    world.outcomes = [Succeeded(b"1")]
    run_id = world.start()
    world.runs.lose_answer_of = ["commit"]
    assert visit(world, run_id).status is Status.SUCCEEDED
