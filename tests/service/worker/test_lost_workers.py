"""A step that ends its process again and again takes others with it, but only it is blamed."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from stepwell_engine import limits
from stepwell_engine.adapters.process.gate import ProcessGate
from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.run.attempt import Attempt, Deferred, Failed, Outcome, Succeeded
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.service.worker.advance import Advance
from stepwell_engine.service.worker.process import WorkerProcess
from tests.service.fanouts import Script, action, compensation, drive, fan, statuses
from tests.service.world import CountedIds, InlineTaskGroups, World

STEP = Step(0, "a", Kind.FUNCTION, "f", max_attempts=3, timeout=30_000)
LOST = limits.LEASE + limits.CLOCK_MARGIN + 1
DEFERRED = Deferred("too many open files")


class Killed(BaseException):
    """The end of the process."""


class Process(World):
    """Workers that share a process, and its gate."""

    def __init__(self) -> None:
        super().__init__(STEP)
        self.gate = ProcessGate()
        self.does: dict[str, Callable[[], object]] = {}
        self.advance = Advance(
            self.runs,
            self,
            dict.fromkeys(Kind, self),
            InlineTaskGroups(),
            self.hints,
            self.clock,
            CountedIds(),
            WorkerProcess(gate=self.gate),
        )

    def run(self, attempt: Attempt) -> Outcome:
        self.attempts.append(attempt)
        self.does.get(attempt.run_id, lambda: None)()
        return Succeeded()

    def lose(self, run_id: str, times: int) -> None:
        """So many workers die with the run in hand; it may be claimed again afterwards."""
        for number in range(times):
            taken = self.runs.claim(run_id, f"dead-{number}", self.clock.at, self.clock.at)
            assert taken.head is not None
            self.clock.at += LOST


def meanwhile(world: Process, run_id: str) -> Head:
    """The head of a run that is advanced while another suspect is in hand."""
    assert world.gate.enter()
    try:
        return world.turn(run_id)
    finally:
        world.gate.leave()


def test_a_run_that_lost_its_worker_once_goes_on_beside_a_suspect() -> None:
    world = Process()
    run_id = world.start()
    world.lose(run_id, 1)
    assert meanwhile(world, run_id).status is Status.SUCCEEDED


def test_a_suspect_waits_for_another_and_loses_nothing() -> None:
    world = Process()
    run_id = world.start()
    world.lose(run_id, 3)
    list(world.delays())
    head = meanwhile(world, run_id)
    assert world.attempts == []
    assert (head.status, head.lease_token, head.lost_leases) == (Status.PENDING, None, 3)
    assert head.ready_at == head.wake_at == world.clock.at + 1_000
    assert list(world.delays()) == [1_000]
    world.clock.at += 1_000
    assert world.turn(run_id).status is Status.SUCCEEDED


def test_a_suspect_leaves_the_gate_open_behind_it() -> None:
    world = Process()
    for _ in range(2):
        run_id = world.start()
        world.lose(run_id, 2)
        assert world.turn(run_id).status is Status.SUCCEEDED


def test_only_the_guilty_run_fails() -> None:
    world = Process()
    innocent, guilty = world.start(), world.start()

    def die() -> None:
        raise Killed

    # Each process takes up the innocent run first, and has it in hand when the guilty one strikes.
    def strike() -> None:
        world.advance.run(guilty, "demo", 60_000)

    world.does = {innocent: strike, guilty: die}
    for _ in range(limits.MAX_LOST_LEASES + 5):
        world.gate = ProcessGate()
        world.advance._process = WorkerProcess(gate=world.gate)
        for run_id in (innocent, guilty):
            try:
                world.advance.run(run_id, "demo", 60_000)
            except Killed:
                break
        world.clock.at += LOST
    assert world.head(innocent).status is Status.SUCCEEDED
    assert world.head(guilty).status is Status.FAILED
    assert world.journal(guilty).records[0].code == "worker_lost"


def test_a_step_that_loses_its_worker_five_times_fails() -> None:
    world = World(action(0), action(1))
    run_id = world.start()
    for worker in range(6):
        world.runs.claim(run_id, f"dead-{worker}", world.clock.at, world.clock.at + limits.LEASE)
        world.clock.at += limits.LEASE + limits.CLOCK_MARGIN + 1
    assert world.head(run_id).lost_leases == 5
    assert world.turn(run_id).status is Status.FAILED
    assert world.journal(run_id).records[0].code == "worker_lost"
    assert world.attempts == []


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
def test_a_step_that_lost_its_worker_too_often_is_compensated_like_any_other(
    parallel: bool,
) -> None:
    """The lost workers count against that step alone, not against the others' compensations."""
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
