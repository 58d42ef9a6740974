"""An attempt that the host could not begin, in the life of a run."""

from dataclasses import replace

from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.run.attempt import Attempt, Deferred, Failed, Outcome, Succeeded
from stepwell_engine.core.run.status import Status, StepStatus
from tests.service.world import START, World, void

SHORT = Deferred("too many open files")
COMPENSATION = Step(0, "compensate:a", Kind.FUNCTION, "g", max_attempts=1, timeout=30_000)
A = Step(0, "a", Kind.FUNCTION, "f", max_attempts=1, timeout=30_000, compensate=COMPENSATION)
B = Step(1, "b", Kind.FUNCTION, "f", max_attempts=1, timeout=30_000)


def test_a_step_with_one_attempt_survives_a_shortage() -> None:
    world = World(A)
    world.outcomes = [SHORT] * 20
    run_id = world.start()
    world.drain()
    assert world.head(run_id).status is Status.SUCCEEDED
    assert [attempt.number for attempt in world.attempts] == [1] * 21
    assert world.clock.at == START + 20 * 2_000
    (record,) = world.journal(run_id).records
    assert (record.attempt, record.started_at) == (1, START + 20 * 2_000)
    assert world.journal(run_id).attempts == 1


def test_a_compensation_is_deferred_too() -> None:
    world = World(A, B)
    world.outcomes = [Succeeded(), Failed("no"), SHORT, SHORT, Succeeded()]
    run_id = world.start()
    world.drain()
    assert world.head(run_id).status is Status.FAILED
    assert [attempt.step for attempt in world.attempts] == ["a", "b", *["compensate:a"] * 3]
    assert world.journal(run_id).records[-1].status is StepStatus.SUCCEEDED


def test_deferred_children_do_not_hold_up_their_siblings() -> None:
    children = tuple(replace(B, ordinal=number, key=f"c{number}") for number in range(1, 4))
    world = World(Step(0, "f", Kind.FANOUT, children=children), Step(4, "j", Kind.JOIN))
    short = ["c1", "c3", "c3"]
    done: list[str] = []

    def run(attempt: Attempt) -> Outcome:
        if attempt.step in short:
            short.remove(attempt.step)
            return SHORT
        done.append(attempt.step)
        return Succeeded()

    world.run = run  # type: ignore[method-assign]
    run_id = world.start()
    world.drain()
    assert world.head(run_id).status is Status.SUCCEEDED
    assert done == ["c2", "c1", "c3"]


def test_a_deferred_run_can_be_cancelled() -> None:
    world = World(A, B)
    world.outcomes = [SHORT, SHORT]
    run_id = world.start()
    world.turn(run_id)
    world.controls.cancel("demo", "orders", run_id)
    (record,) = world.journal(run_id).records or world.journal(run_id).open
    assert record.error == "too many open files"
    other = world.start()
    world.during = lambda _: void(world.controls.cancel("demo", "orders", other))
    head = world.turn(other)
    assert (head.status, head.lease_token) == (Status.CANCELLED, None)
    (record,) = world.journal(other).records
    assert (record.status, record.attempt) == (StepStatus.CANCELLED, 0)
