"""Fan-out, join and compensation with one worker and one run."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.run.attempt import Attempt, Deferred, Failed, Outcome, Succeeded
from stepwell_engine.core.run.records import Joined
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.service.runs.records import RunReader
from tests.service.world import World, void

DEFERRED = Deferred("too many open files")


def compensation(ordinal: int, key: str) -> Step:
    return Step(ordinal, f"compensate:{key}", Kind.FUNCTION, "u", max_attempts=2, timeout=30_000)


def action(ordinal: int, compensated: bool = True) -> Step:
    key = f"s{ordinal}"
    return Step(
        ordinal,
        key,
        Kind.FUNCTION,
        "f",
        max_attempts=2,
        timeout=30_000,
        compensate=compensation(ordinal, key) if compensated else None,
    )


def fan(children: int, first: int = 0, compensated: bool = True) -> tuple[Step, Step]:
    many = tuple(action(first + 1 + n, compensated) for n in range(children))
    parent = Step(first, f"fan{first}", Kind.FANOUT, children=many)
    return parent, Step(first + children + 1, f"join{first}", Kind.JOIN)


class Script:
    """Outcomes by step key; steps without one succeed with their key."""

    def __init__(self, world: World) -> None:
        self.outcomes: dict[str, list[Outcome]] = {}
        self.seen: list[str] = []
        world.run = self.run  # type: ignore[method-assign]
        self.during = world

    def run(self, attempt: Attempt) -> Outcome:
        self.seen.append(attempt.step)
        self.during.during(attempt)
        left = self.outcomes.get(attempt.step, [])
        return left.pop(0) if left else Succeeded(b'"%s"' % attempt.step.encode())


def drive(world: World, run_id: str) -> Status:
    for _ in range(50):
        head = world.turn(run_id)
        if not head.live:
            return head.status
        world.clock.at = max(world.clock.at, head.ready_at)
    raise AssertionError("the run does not end")


def statuses(world: World, run_id: str) -> dict[str, StepStatus]:
    head = world.head(run_id)
    keys = world.definition.keys
    records = RunReader(world.runs, world.clock).records(head, world.journal(run_id), keys)
    return {key: record.status for key, record in records.items()}


def output(world: World, run_id: str) -> bytes | None:
    head = world.head(run_id)
    reader = RunReader(world.runs, world.clock)
    program = world.load("demo", "orders", 1)
    records = reader.records(head, world.journal(run_id), program.keys)
    return reader.run_output(head, program, records)


def test_a_join_collects_the_outputs_by_key() -> None:
    world = World(*fan(3), action(5, compensated=False))
    script = Script(world)
    script.outcomes = {"s2": [Succeeded()], "s5": [Succeeded()]}
    run_id = world.start()
    assert drive(world, run_id) is Status.SUCCEEDED
    assert output(world, run_id) == b'{"s1":"s1","s2":null,"s3":"s3"}'
    assert script.seen == ["s1", "s2", "s3", "s5"]


def test_two_hundred_children_run_once_each_and_keep_the_head_small() -> None:
    world = World(*fan(200))
    script = Script(world)
    run_id = world.start()
    assert drive(world, run_id) is Status.SUCCEEDED
    assert sorted(script.seen) == sorted(f"s{n}" for n in range(1, 201))
    assert max(len(commit.journal) for commit in world.runs.seen) < limits.PAGE_ABOVE + 300
    assert len(statuses(world, run_id)) == 202


def test_a_child_backs_off_on_its_own_budget_while_its_siblings_go_on() -> None:
    world = World(*fan(3))
    script = Script(world)
    script.outcomes = {"s1": [Failed("busy")]}
    run_id = world.start()
    head = world.turn(run_id)
    assert (head.status, head.ready_at - world.clock.at) == (Status.PENDING, 2_000)
    assert script.seen == ["s1", "s2", "s3"]
    assert drive(world, run_id) is Status.SUCCEEDED
    assert script.seen == ["s1", "s2", "s3", "s1"]


def test_a_child_that_failed_fails_the_join_and_unwinds_its_siblings_and_what_was_before() -> None:
    world = World(action(0), *fan(3, first=1), action(6))
    script = Script(world)
    script.outcomes = {"s3": [Failed("no"), Failed("never")]}
    run_id = world.start()
    assert drive(world, run_id) is Status.FAILED
    journal = world.journal(run_id)
    assert journal.failure is not None
    assert journal.failure.message == 'child "s3" failed: never'
    assert journal.failure.code == "child_failed"
    assert script.seen[-3:] == ["compensate:s2", "compensate:s4", "compensate:s0"]
    assert journal.compensating == -1
    shown = statuses(world, run_id)
    assert shown["join1"] is StepStatus.FAILED
    assert shown["s3"] is StepStatus.FAILED
    assert "compensate:s3" not in shown
    assert "s6" not in shown


def test_children_that_never_started_stay_so_once_one_has_failed() -> None:
    world = World(*fan(20))
    script = Script(world)
    script.outcomes = {"s1": [Failed("no", retryable=False)], "s2": [Failed("busy")]}
    run_id = world.start()
    assert drive(world, run_id) is Status.FAILED
    assert script.seen[:8] == [f"s{n}" for n in range(1, 9)]
    assert set(script.seen[8:]) == {f"compensate:s{n}" for n in range(3, 9)}
    assert statuses(world, run_id)["s2"] is StepStatus.CANCELLED


def test_a_fanout_that_was_joined_is_unwound_through_all_its_children() -> None:
    world = World(*fan(3), action(5))
    script = Script(world)
    script.outcomes = {"s5": [Failed("no", retryable=False)]}
    run_id = world.start()
    assert drive(world, run_id) is Status.FAILED
    assert script.seen[4:] == ["compensate:s1", "compensate:s2", "compensate:s3"]
    assert world.journal(run_id).position == 2


@pytest.mark.parametrize(("over", "status"), [(0, Status.SUCCEEDED), (1, Status.FAILED)])
def test_the_limit_of_a_joins_output(over: int, status: Status) -> None:
    world = World(*fan(2))
    script = Script(world)
    # {"s1":"x…","s2":"x…"}: 15 bytes beside the text.
    half = limits.MAX_OUTPUT // 2 - 7
    first = b'"' + b"x" * (half - 1) + b'"'
    second = b'"' + b"x" * (half - 2 + over) + b'"'
    script.outcomes = {"s1": [Succeeded(first)], "s2": [Succeeded(second)]}
    run_id = world.start()
    assert drive(world, run_id) is status
    if over:
        failure = world.journal(run_id).failure
        assert failure is not None
        assert failure.code == "output_too_large"
    else:
        assert len(output(world, run_id) or b"") == limits.MAX_OUTPUT


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


def test_a_run_with_nothing_to_undo_just_fails() -> None:
    world = World(action(0, compensated=False), action(1))
    Script(world).outcomes = {"s1": [Failed("no", retryable=False)]}
    run_id = world.start()
    assert drive(world, run_id) is Status.FAILED
    assert world.journal(run_id).compensating is None


def test_the_step_ceiling_undoes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_RUN_ATTEMPTS", 1)
    world = World(action(0), action(1))
    script = Script(world)
    run_id = world.start()
    assert drive(world, run_id) is Status.FAILED
    assert script.seen == ["s0"]


def test_a_cancel_in_the_middle_of_the_rollback_stops_it_there() -> None:
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


def test_a_cancel_of_a_fanout_records_what_is_in_flight_and_starts_no_more() -> None:
    world = World(*fan(20))
    script = Script(world)
    run_id = world.start()

    def cancel(attempt: Attempt) -> None:
        if attempt.step == "s3":
            void(world.controls.cancel("demo", "orders", run_id))

    world.during = cancel
    assert drive(world, run_id) is Status.CANCELLED
    assert script.seen == [f"s{n}" for n in range(1, 9)]
    shown = statuses(world, run_id)
    assert all(shown[f"s{n}"] is StepStatus.SUCCEEDED for n in range(1, 9))
    assert shown["join0"] is StepStatus.CANCELLED
    assert "s9" not in shown


def test_a_joins_output_is_put_together_when_it_is_read() -> None:
    world = World(*fan(1))
    Script(world)
    run_id = world.start()
    drive(world, run_id)
    records = world.journal(run_id).records
    assert replace(records[-1], output=None) != records[-1]
    assert isinstance(records[-1].output, Joined)


def crash(world: World, run_id: str) -> int:
    """Advance a run until no process dies of it any more; how many died."""
    for died in range(50):
        try:
            world.turn(run_id)
        except KeyboardInterrupt:
            world.clock.at += limits.LEASE + limits.CLOCK_MARGIN + 1
        else:
            return died
    raise AssertionError("processes die of it for ever")


@pytest.mark.parametrize("parallel", [False, True])
def test_a_step_that_lost_its_worker_too_often_is_unwound_like_any_other(parallel: bool) -> None:
    """The lost workers count against that step alone, not against what undoes the others."""
    world = World(action(0), *(fan(2, first=1) if parallel else (action(1),)))
    script = Script(world)
    run_id = world.start()
    world.during = lambda attempt: die() if attempt.step in {"s1", "s3"} else None
    crashes = crash(world, run_id)
    assert drive(world, run_id) is Status.FAILED
    found = statuses(world, run_id)
    assert found["compensate:s0"] is StepStatus.SUCCEEDED
    assert [key for key, status in found.items() if status is StepStatus.FAILED] == (
        ["s3", "join1"] if parallel else ["s1"]
    )
    assert ("compensate:s2" in found) is parallel
    assert crashes == limits.MAX_LOST_LEASES + (limits.SUSPECT_LOST_LEASES if parallel else 0)
    assert script.seen[-1] == "compensate:s0"
    failure = world.journal(run_id).failure
    assert failure is not None
    assert (failure.code, failure.stuck) == ("child_failed" if parallel else "worker_lost", False)


def die() -> None:
    raise KeyboardInterrupt


def test_of_several_children_the_one_that_was_tried_is_to_blame_for_lost_workers() -> None:
    """Not the one that stands before it, and comes back from its backoff."""
    world = World(*fan(2, compensated=False))
    script = Script(world)
    script.outcomes["s1"] = [Failed("busy")]
    run_id = world.start()
    world.during = lambda attempt: die() if attempt.step == "s2" else None
    crash(world, run_id)
    found = statuses(world, run_id)
    assert (found["s1"], found["s2"]) == (StepStatus.SUCCEEDED, StepStatus.FAILED)
    assert world.head(run_id).status is Status.FAILED


def test_of_children_that_are_due_the_one_whose_turn_it_is_is_to_blame() -> None:
    """Not the first of the definition: a worker that comes back tries what was due first."""
    patient = tuple(replace(child, max_attempts=5) for child in fan(2)[0].children)
    world = World(replace(fan(2)[0], children=patient), fan(2)[1])
    script = Script(world)
    # Due after 2 + 4 s the one, after 2 + 2 s the other.
    script.outcomes = {"s1": [Failed("busy"), Failed("busy")], "s2": [Failed("busy"), DEFERRED]}
    run_id = world.start()
    for _ in range(2):
        world.clock.at = max(world.clock.at, world.turn(run_id).ready_at)
    world.clock.at += limits.MINUTE
    world.during = lambda attempt: die() if attempt.step == "s2" else None
    assert crash(world, run_id) == limits.MAX_LOST_LEASES
    records = {record.key: record for record in world.journal(run_id).records}
    assert (records["s1"].status, records["s2"].code) == (StepStatus.CANCELLED, "worker_lost")


def test_of_compensations_that_are_due_the_one_whose_turn_it_is_is_to_blame() -> None:
    patient = tuple(
        replace(child, compensate=replace(compensation(child.ordinal, child.key), max_attempts=5))
        for child in fan(2)[0].children
    )
    world = World(replace(fan(2)[0], children=patient), fan(2)[1], action(4))
    script = Script(world)
    script.outcomes = {
        "s4": [Failed("no")] * 2,
        "compensate:s1": [Failed("busy")] * 2,
        "compensate:s2": [Failed("busy"), DEFERRED],
    }
    run_id = world.start()
    while script.seen.count("compensate:s2") < 2:
        world.clock.at = max(world.clock.at, world.turn(run_id).ready_at)
    world.clock.at += limits.MINUTE
    world.during = lambda attempt: die() if attempt.step == "compensate:s2" else None
    assert crash(world, run_id) == limits.MAX_LOST_LEASES
    found = statuses(world, run_id)
    assert found["compensate:s2"] is StepStatus.FAILED
    assert found.get("compensate:s1") is not StepStatus.FAILED


class SlowFirst:
    """A crew whose first task takes longer than all others together."""

    def __init__(self, world: World, longest: int) -> None:
        self._world = world
        self._tasks: list[Callable[[], None]] = []
        self._longest = longest

    def open(self) -> "SlowFirst":
        return self

    def start(self, task: Callable[[], None]) -> None:
        self._tasks.append(task)

    def wait(self, ms: int | None) -> None:
        self._world.clock.at += self._longest
        self._tasks.pop(1 if len(self._tasks) > 1 else 0)()

    def close(self) -> None:
        pass


def test_a_slow_child_does_not_keep_others_from_beginning_when_the_time_is_up() -> None:
    """It keeps the worker at this run anyway."""
    world = World(*fan(12, compensated=False))
    script = Script(world)
    world.advance._task_groups = SlowFirst(world, 1_000)
    world.advance.run(world.start(), "demo", budget=3_000)
    assert len(script.seen) == 12
    assert script.seen[-1] == "s1"
