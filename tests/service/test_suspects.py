"""A run that ends its process again and again takes others with it, but only it is blamed."""

from collections.abc import Callable

from stepwell_engine import limits
from stepwell_engine.adapters.process.gate import ProcessGate
from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.run.attempt import Attempt, Outcome, Succeeded
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.status import Status
from stepwell_engine.service.worker.advance import Advance
from tests.service.world import CountedIds, InlineTaskGroups, World

STEP = Step(0, "a", Kind.FUNCTION, "f", max_attempts=3, timeout=30_000)
LOST = limits.LEASE + limits.CLOCK_MARGIN + 1


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
            self.gate,
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
        world.advance._gate = world.gate  # of a new process
        for run_id in (innocent, guilty):
            try:
                world.advance.run(run_id, "demo", 60_000)
            except Killed:
                break
        world.clock.at += LOST
    assert world.head(innocent).status is Status.SUCCEEDED
    assert world.head(guilty).status is Status.FAILED
    assert world.journal(guilty).records[0].code == "worker_lost"
