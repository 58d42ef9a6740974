"""Fan-outs to test with, and what came of them."""

from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.run.attempt import Attempt, Outcome, Succeeded
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.service.runs.run_reader import RunReader
from tests.service.world import World


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
