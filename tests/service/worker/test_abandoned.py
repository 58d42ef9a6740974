"""A process that ends without waiting for its runs lets go of them: nobody counts as lost."""

from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.run.attempt import Attempt, Failed
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.status import Status
from stepwell_engine.errors import Unavailable
from stepwell_engine.ports import Commit, Written
from tests.service.fanouts import fan
from tests.service.world import World

STEPS = (Step(0, "a", Kind.FUNCTION, "f"), Step(1, "b", Kind.FUNCTION, "f"))
WITHIN = 5_000


def abandon_during(world: World, step: str, number: int = 1) -> list[int]:
    """Abandon the process while that attempt of a step is in flight; what that returns."""
    kept: list[int] = []

    def during(attempt: Attempt) -> None:
        if (attempt.step, len(world.attempts)) == (step, number):
            kept.append(world.advance.abandon([], WITHIN))

    world.during = during
    return kept


def released(head: Head, world: World) -> None:
    assert (head.status, head.lease_token, head.lost_leases) == (Status.PENDING, None, 0)
    assert head.ready_at <= world.clock.at
    assert head.wake_at is not None
    assert head.wake_at <= world.clock.at


def successor(world: World) -> None:
    """The next process, on the same store."""
    fresh = World(*world.definition.steps)
    fresh.runs, fresh.clock = world.runs, world.clock
    world.advance = type(world.advance)(
        world.runs,
        world,
        dict.fromkeys(Kind, world),
        fresh.advance._task_groups,
        world.hints,
        world.clock,
        fresh.advance._ids,
    )
    world.during = lambda _: None


def test_a_run_is_let_go_and_its_worker_does_nothing_more() -> None:
    world = World(*STEPS)
    run_id = world.start()
    kept = abandon_during(world, "b", 2)
    released(world.turn(run_id), world)
    assert kept == [0]
    assert [one.step for one in world.attempts] == ["a", "b"]
    assert world.turn(run_id).lease_token is None  # nothing is claimed by this process any more


def test_what_was_in_flight_costs_no_attempt_and_is_made_again() -> None:
    world = World(*STEPS)
    run_id = world.start()
    world.outcomes = [Failed("killed by its own host")]
    abandon_during(world, "a")
    released(world.turn(run_id), world)
    successor(world)
    assert world.turn(run_id).status is Status.SUCCEEDED
    assert [(one.step, one.number) for one in world.attempts] == [("a", 1), ("a", 1), ("b", 1)]


def test_an_outcome_in_hand_is_recorded() -> None:
    world = World(*fan(2))
    run_id = world.start()
    kept = abandon_during(world, "s2", 2)
    released(world.turn(run_id), world)
    assert kept == [0]
    successor(world)
    assert world.turn(run_id).status is Status.SUCCEEDED
    assert [one.step for one in world.attempts] == ["s1", "s2", "s2"]


def test_a_failure_that_waits_for_its_siblings_is_not_recorded_alone() -> None:
    world = World(*fan(2))
    run_id = world.start()
    world.outcomes = [Failed("no", retryable=False)]
    abandon_during(world, "s2", 2)
    released(world.turn(run_id), world)
    successor(world)
    world.turn(run_id)
    assert [one.step for one in world.attempts][:3] == ["s1", "s2", "s1"]


def test_attempts_are_ended_before_their_run_is_let_go() -> None:
    world = World(*STEPS)
    run_id = world.start()
    tokens: list[str | None] = []

    def during(_: Attempt) -> None:
        end = lambda: tokens.append(world.head(run_id).lease_token)  # noqa: E731  one word
        world.advance.abandon([end], WITHIN)

    world.during = during
    released(world.turn(run_id), world)
    assert tokens == ["token-2"]


def test_a_store_that_refuses_is_given_up() -> None:
    world = World(*STEPS)
    run_id = world.start()

    def refuse(commit: Commit) -> Written:
        raise Unavailable("busy")

    kept = abandon_during(world, "a")
    began = world.clock.at
    world.runs.commit = refuse  # type: ignore[method-assign]
    head = world.turn(run_id)
    assert head.lease_token is not None
    assert kept == [1]
    assert world.clock.at - began <= WITHIN


def test_a_commit_that_came_in_between_is_gone_on_from() -> None:
    world = World(*STEPS)
    run_id = world.start()
    world.runs.lose_answer_of = ["commit"]
    kept = abandon_during(world, "a")
    released(world.turn(run_id), world)
    assert kept == [0]
