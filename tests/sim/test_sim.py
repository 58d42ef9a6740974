"""The real service and core keep every property, in 5,000 simulated worlds."""

from collections import Counter
from itertools import islice

import pytest

from stepwell_engine.core.run.attempt import Deferred
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.limits import MAX_DEPTH
from tests.sim.__main__ import main
from tests.sim.coverage import Coverage, wanted
from tests.sim.definitions import KINDS
from tests.sim.ledger import Ledger
from tests.sim.mutation import Mutation
from tests.sim.mutations import MUTATIONS
from tests.sim.scheduler import Scheduler, Violation
from tests.sim.world import REAL, World, simulate

SEEDS = 5_000
SHARE = 500  # seeds of one test, so that the workers of a test run share them


@pytest.mark.parametrize("start", range(0, SEEDS, SHARE))
def test_every_property_holds(start: int) -> None:
    found = simulate(range(start, start + SHARE))
    assert found is None, str(found)


def trace_of(seed: int) -> tuple[str, ...]:
    world = World(seed, REAL, Coverage(), keep=100_000)
    world.run()
    return world.scheduler.lines()


@pytest.mark.parametrize("seed", range(5))
def test_a_seed_repeats_itself(seed: int) -> None:
    trace = trace_of(seed)
    assert trace
    assert trace == trace_of(seed)


def test_seeds_differ() -> None:
    assert len({trace_of(seed) for seed in range(20)}) == 20


def count(ledger: Ledger, seen: Counter[str]) -> None:
    head, journal = ledger.head, ledger.journal
    seen[f"run {head.status}"] += 1
    seen[f"depth {head.depth}"] += 1
    seen["page"] += len(ledger.pages)
    for page in journal.pages:
        seen[f"page of level {page.level}"] += 1
    seen["lost lease"] += len(ledger.lost)
    seen["consumed signal"] += len(ledger.consumed)
    seen["second child of a step"] += sum(attempt > 1 for _, attempt in ledger.children.values())
    seen["child given up"] += head.parent is not None and ledger.canceller == head.parent
    seen["cascade"] += ledger.cascaded_at is not None
    compensated = journal.compensating is not None
    if compensated and head.status is Status.FAILED:
        stuck = journal.failure is not None and journal.failure.stuck
        seen["compensation stuck" if stuck else "compensation complete"] += 1
    seen["compensation stopped by a cancel"] += compensated and head.status is Status.CANCELLED
    seen["execution that was not recorded"] += sum(
        not execution.recorded for execution in ledger.executions
    )
    for record in ledger.records.values():
        compensates = ledger.compensates(record.key)
        seen["attempt of a history"] += len(record.history)
        seen["history that lacks attempts"] += 0 < len(record.history) < record.attempt
        kind = "compensation" if compensates else ledger.definition.by_key[record.key].kind
        seen[f"{kind} {record.status}"] += 1
        seen[f"code {record.code}"] += 1
    for execution in ledger.deferred.values():
        seen["deferred attempt"] += 1
        slow = isinstance(execution.outcome, Deferred) and "slow" in execution.outcome.message
        seen["attempt that came too late to begin"] += slow


CODES = (
    *("worker_lost", "wait_timed_out", "output_too_large", "child_failed", "child_cancelled"),
    *("timeout", "depth_exceeded", "unknown_resource"),
)
PATHS = (
    *(
        "page",
        "page of level 1",
        "page of level 2",
        "deferred attempt",
        "lost lease",
        "consumed signal",
    ),
    "attempt that came too late to begin",
    *("execution that was not recorded", "attempt of a history", "history that lacks attempts"),
    *("second child of a step", "child given up", "cascade"),
    *("compensation stuck", "compensation complete", "compensation stopped by a cancel"),
)
OVER = (StepStatus.SUCCEEDED, StepStatus.FAILED, StepStatus.CANCELLED)
NEVER = ("sleep failed", "fanout failed")


def test_a_good_deal_happens_in_these_worlds() -> None:
    seen: Counter[str] = Counter()
    for seed in range(500):
        world = World(seed, REAL, Coverage(), keep=0)
        world.run()
        for ledger in world.checks.ledgers.values():
            count(ledger, seen)
    expected = [f"run {status}" for status in (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED)]
    expected += [f"depth {depth}" for depth in range(MAX_DEPTH + 1)]
    expected += [*PATHS, *(f"code {code}" for code in CODES)]
    expected += [f"{kind} {status}" for kind in KINDS for status in OVER]
    expected += [f"compensation {status}" for status in (StepStatus.SUCCEEDED, StepStatus.FAILED)]
    assert [what for what in expected if not seen[what]] == list(NEVER)


# --- the command ------------------------------------------------------------------------------


def named(name: str) -> Mutation:
    return next(mutation for mutation in MUTATIONS if mutation.name == name)


def test_the_command_says_that_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "20", "--start", "7"]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first == "20 seeds from 7 on: no violation"
    assert last.startswith("coverage: 9 kinds of steps × crash points: ")


def test_the_command_prints_the_seed_and_what_happened(
    capsys: pytest.CaptureFixture[str],
) -> None:
    engine = named("no clock check before an attempt").engine
    assert main(["--seeds", "20"], engine) == 1
    lines = capsys.readouterr().out.splitlines()
    found = simulate(range(20), engine)
    assert found is not None
    assert f"seed {found.seed}: property 4: " in lines[-3]
    assert lines[-2] == f"repeat with: make sim SEEDS=1 START={found.seed}"
    assert any("claim done: " in line for line in lines)
    assert main(["--seeds", "1", "--start", str(found.seed)], engine) == 1


def test_a_crash_point_that_is_never_hit_fails_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--seeds", "10"], enough=11) == 0
    assert main(["--seeds", "10"], enough=10) == 1
    assert "; never hit: " in capsys.readouterr().out.splitlines()[-1]


def test_coverage_counts_every_point() -> None:
    coverage = Coverage()
    points = wanted()
    assert len(points) == len(set(points))
    for kind, call, _ in islice(points, 0, None, 2):
        coverage.hit(kind, call, "before")
    assert coverage.missed() == [point for point in points if point[2] == "after"]
    for kind, call, _ in islice(points, 0, None, 2):
        coverage.hit(kind, call, "after")
    assert coverage.missed() == []
    assert "never hit" not in coverage.line()


@pytest.mark.parametrize("arguments", [["--seeds", "-1"], ["--start", "x"], ["--seed", "many"]])
def test_bad_arguments_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(arguments)
    assert error.value.code == 2


# --- the scheduler ----------------------------------------------------------------------------


def test_actors_run_in_the_order_of_time_and_of_planning() -> None:
    scheduler = Scheduler(0, keep=10)
    order: list[str] = []

    def pausing() -> None:
        order.append("pauses")
        scheduler.pause(5)
        order.append(f"goes on at +{scheduler.now - begin}")

    begin = scheduler.now
    scheduler.spawn("b", lambda: order.append("second"), begin + 5)
    scheduler.spawn("a", pausing, begin)
    scheduler.at(begin + 5, lambda: order.append("third"))
    scheduler.run(most=10)
    assert order == ["pauses", "second", "third", "goes on at +5"]


def test_a_world_without_rest_is_a_violation() -> None:
    scheduler = Scheduler(0, keep=10)

    def restless() -> None:
        while True:
            scheduler.pause(1)

    scheduler.spawn("restless", restless, scheduler.now)
    with pytest.raises(Violation, match="does not come to rest within 100 events"):
        scheduler.run(most=100)
