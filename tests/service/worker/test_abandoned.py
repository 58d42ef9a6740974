"""A process that ends without waiting for its runs lets go of them: nobody counts as lost."""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.declared.program import DeclaredProgram
from stepwell_engine.core.run.attempt import Attempt, Failed
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.errors import Unavailable
from stepwell_engine.ports import Commit, Written
from tests.service.fanouts import Script, fan, statuses
from tests.service.world import World, void

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


def abandon_after_all(world: World) -> list[int]:
    """Abandon the process once all that can begin has completed, and nothing of it is recorded."""
    kept: list[int] = []
    groups = world.advance._task_groups
    groups.wait = lambda _: kept.append(world.advance.abandon([], WITHIN))  # type: ignore[attr-defined]
    return kept


def test_of_outcomes_in_hand_only_a_failure_waits_for_its_siblings() -> None:
    world = World(*fan(3))
    script = Script(world)
    script.outcomes = {"s2": [Failed("no", retryable=False)]}
    run_id = world.start()
    world.during = lambda attempt: (
        void(world.advance.abandon([], WITHIN)) if attempt.step == "s3" else None
    )
    released(world.turn(run_id), world)
    assert statuses(world, run_id)["s1"] is StepStatus.SUCCEEDED
    assert "s2" not in statuses(world, run_id)


def test_a_run_that_is_done_ends() -> None:
    world = World(*fan(2))
    run_id = world.start()
    kept = abandon_after_all(world)
    head = world.turn(run_id)
    assert (head.status, head.lease_token, kept) == (Status.SUCCEEDED, None, [0])


def test_of_a_cancelled_run_what_is_in_hand_is_recorded() -> None:
    world = World(*fan(3))
    run_id = world.start()

    def during(attempt: Attempt) -> None:
        if attempt.step == "s3":
            void(world.controls.cancel("demo", "orders", run_id))
            assert world.advance.abandon([], WITHIN) == 0

    world.during = during
    head = world.turn(run_id)
    assert (head.status, head.lease_token, head.wake_at) == (Status.CANCELLED, None, None)
    found = statuses(world, run_id)
    assert (found["s1"], found["s2"]) == (StepStatus.SUCCEEDED, StepStatus.SUCCEEDED)
    assert found.get("s3") is not StepStatus.SUCCEEDED


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


def test_no_attempt_begins_any_more() -> None:
    world = World(*fan(3))
    run_id = world.start()
    kept = abandon_during(world, "s1", 1)
    released(world.turn(run_id), world)
    assert kept == [0]
    assert [one.step for one in world.attempts] == ["s1"]
    successor(world)
    assert world.turn(run_id).status is Status.SUCCEEDED
    assert [one.number for one in world.attempts] == [1] * 4


def test_a_run_whose_definition_is_looked_up_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(*STEPS)
    run_id = world.start()
    load = world.load
    kept: list[int] = []

    def slow(*version: object) -> DeclaredProgram:
        kept.append(world.advance.abandon([], WITHIN))
        released(world.head(run_id), world)
        return load(*version)  # type: ignore[arg-type]

    monkeypatch.setattr(world, "load", slow)
    released(world.turn(run_id), world)
    assert (kept, world.attempts) == ([0], [])
    monkeypatch.setattr(world, "load", load)
    successor(world)
    assert world.turn(run_id).status is Status.SUCCEEDED


def test_a_run_whose_definition_is_looked_up_stays_if_the_store_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(*STEPS)
    run_id = world.start()
    load, kept = world.load, []

    def refuse(commit: Commit) -> bool:
        raise Unavailable("busy")

    def slow(*version: object) -> DeclaredProgram:
        kept.append(world.advance.abandon([], WITHIN))
        return load(*version)  # type: ignore[arg-type]

    monkeypatch.setattr(world, "load", slow)
    monkeypatch.setattr(world.runs, "let_go", refuse)
    began = world.clock.at
    head = world.turn(run_id)
    assert (kept, head.lease_token is None, world.attempts) == ([1], False, [])
    assert world.clock.at - began <= WITHIN


class SlowClaim:
    """A claim that the store answers while the process is being abandoned."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self._claim = world.runs.claim
        self._asked, self._answer = threading.Event(), threading.Event()
        self._monkeypatch, self._world = monkeypatch, world
        monkeypatch.setattr(world.runs, "claim", self.claim)

    def claim(self, run_id: str, token: str, now: int, until: int, lane: Lane) -> Written:
        self._asked.set()
        assert self._answer.wait(60)
        return self._claim(run_id, token, now, until, lane)

    def during(self, visit: Callable[[], object], answered: bool = True) -> int:
        """Abandon the process during the claim of a visit; what that returns."""
        thread = threading.Thread(target=visit)

        def sleep(ms: int) -> None:
            self._world.clock.at += ms
            if answered:
                self._answer.set()
                thread.join()

        thread.start()
        assert self._asked.wait(60)
        self._monkeypatch.setattr(self._world.clock, "sleep", sleep)
        kept = self._world.advance.abandon([], WITHIN)
        self._answer.set()
        thread.join()
        return kept


def test_a_run_that_is_claimed_meanwhile_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(*STEPS)
    run_id = world.start()
    kept = SlowClaim(world, monkeypatch).during(lambda: world.turn(run_id))
    released(world.head(run_id), world)
    assert (kept, world.attempts) == (0, [])


def test_a_claim_that_is_not_answered_is_waited_for_no_longer_than_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(*STEPS)
    run_id = world.start()
    began = world.clock.at
    kept = SlowClaim(world, monkeypatch).during(lambda: world.turn(run_id), answered=False)
    assert (kept, world.attempts) == (1, [])
    assert world.clock.at - began <= WITHIN + 20


def test_a_run_that_is_claimed_anew_for_an_outcome_is_let_go_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(*STEPS)
    run_id = world.start()
    slow: list[SlowClaim] = []

    def lose(_: Attempt) -> None:
        """Another worker takes the lease and is lost, too."""
        world.clock.at += limits.LEASE + limits.CLOCK_MARGIN + 1
        void(world.runs.claim(run_id, "other", world.clock.at, world.clock.at + 1))
        world.clock.at += limits.CLOCK_MARGIN + 2
        slow.append(SlowClaim(world, monkeypatch))
        begun.set()

    begun = threading.Event()
    world.during = lose
    thread = threading.Thread(target=lambda: world.turn(run_id))
    thread.start()
    assert begun.wait(60)
    assert slow[0].during(thread.join) == 0
    head = world.head(run_id)
    assert (head.lease_token, head.lost_leases) == (None, 0)  # it has moved
    assert [one.key for one in world.journal(run_id).records] == ["a"]


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_that_a_newer_version_writes_to_is_let_go_with_what_is_in_hand(fails: bool) -> None:
    """A failure that waits for its siblings is not recorded alone."""
    world = World(*fan(2))
    run_id = world.start()
    newer = limits.RUN_FORMAT + 1
    kept: list[int] = []
    world.outcomes = [Failed("no", retryable=False)] if fails else []

    def during(attempt: Attempt) -> None:
        if attempt.step == "s2":
            world.runs._heads[run_id] = replace(world.head(run_id), format=newer)
            kept.append(world.advance.abandon([], WITHIN))

    world.during = during
    world.advance.run(run_id, "demo", 60_000)
    head = world.runs._heads[run_id]
    assert (kept, head.lease_token, head.lost_leases) == ([0], None, 0)
    successor(world)
    world.runs.known_format = newer
    world.turn(run_id)
    again = ["s1"] if fails else []
    assert [one.step for one in world.attempts][:4] == ["s1", "s2", *again, "s2"]


def test_a_failed_child_in_hand_fails_its_run_at_once_although_the_journal_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who decides what follows from it does not read pages."""
    monkeypatch.setattr(limits, "PAGE_ABOVE", 0)
    world = World(*fan(2))
    run_id = world.start()
    write = world.runs.commit
    world.outcomes = [Failed("no", retryable=False), Failed("busy")]

    def refused(commit: Commit) -> Written:
        if len(world.attempts) < 2:
            return write(commit)
        world.runs.commit = write  # type: ignore[method-assign]
        assert world.advance.abandon([], WITHIN) == 0
        raise Unavailable("a moment")

    world.runs.commit = refused  # type: ignore[method-assign]
    head = world.turn(run_id)
    assert (head.status, head.lease_token) == (Status.FAILED, None)
    assert world.journal(run_id).pages
    assert [one.step for one in world.attempts] == ["s1", "s2"]
