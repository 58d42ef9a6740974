"""A step that ends its process again and again takes others with it, but only it is blamed."""

from dataclasses import replace

import pytest

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.run.attempt import Attempt, Deferred, Failed
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.core.values.subject import Subject, about_run
from stepwell_engine.errors import Unavailable
from stepwell_engine.service.worker.process import MOST_UNANSWERED, Unanswered
from tests.service.fanouts import Script, action, compensation, drive, fan, statuses
from tests.service.world import World, void

STEP = Step(0, "a", Kind.FUNCTION, "f", max_attempts=3, timeout=30_000)
LOST = limits.LEASE + limits.CLOCK_MARGIN + 1
DEFERRED = Deferred("too many open files")


def lose(world: World, run_id: str, times: int, lane: Lane = Lane.HOST) -> None:
    """So many workers die with the run in hand; it may be claimed again afterwards."""
    for number in range(times):
        claimed = world.runs.claim(
            run_id, f"dead-{number}-{world.clock.at}", world.clock.at, world.clock.at, lane
        )
        assert claimed.head is not None
        assert claimed.head.lease_token == f"dead-{number}-{world.clock.at}"
        world.clock.at += LOST


def suspect(*steps: Step) -> tuple[World, str]:
    world = World(*(steps or (STEP,)))
    run_id = world.start()
    lose(world, run_id, limits.SUSPECT_LOST_LEASES)  # the next claim is of a lost one, too
    list(world.delays())
    return world, run_id


def die() -> None:
    raise KeyboardInterrupt


def crash(world: World, run_id: str) -> int:
    """Advance a run until its host dies of it no more and it is over; how often it died."""
    died = 0
    for _ in range(100):
        try:
            head = world.turn(run_id)
        except KeyboardInterrupt:
            died += 1
            world.isolation.taken = False
            world.clock.at += LOST
        else:
            if not head.live:
                return died
            world.clock.at = max(world.clock.at, head.ready_at)
    raise AssertionError("it is never over")


# --- in a process with others --------------------------------------------------------------------


def other() -> Subject:
    """A suspect that nobody here advances."""
    return about_run("other", "demo")


def test_a_run_that_lost_its_worker_twice_goes_on_beside_a_suspect() -> None:
    world = World(STEP)
    run_id = world.start()
    lose(world, run_id, 2)
    assert world.isolation.enter(other())
    assert world.turn(run_id).status is Status.SUCCEEDED
    assert world.isolation.seen == []


def test_a_suspect_waits_for_its_turn_without_a_lease_and_loses_nothing() -> None:
    world, run_id = suspect()
    assert world.isolation.enter(other())
    head = world.turn(run_id)
    assert world.attempts == []
    assert (head.status, head.lease_token, head.lost_leases) == (Status.PENDING, None, 3)
    assert (head.ready_at, head.wake_at) == (world.clock.at, world.clock.at + limits.LEASE)
    assert list(world.delays()) == []  # it is hinted when it is its turn
    assert world.isolation.leave() == about_run(run_id, "demo")
    assert world.turn(run_id).status is Status.SUCCEEDED


def test_suspects_take_turns_in_the_order_in_which_they_came() -> None:
    world = World(STEP)
    first, *others = runs = [world.start() for _ in range(4)]
    for run_id in runs:
        lose(world, run_id, limits.SUSPECT_LOST_LEASES)
    void(list(world.delays()))
    seen: list[list[int]] = []

    def meanwhile(attempt: Attempt) -> None:
        if attempt.run_id == first:
            for run_id in (*others, *reversed(others)):  # a repeated hint changes no turn
                void(world.turn(run_id))
            seen.append(list(world.delays()))

    world.during = meanwhile
    world.outcomes = [Failed("busy")]
    assert world.turn(first).live
    hinted = []
    for _ in others:
        hint = world.hints.pop_due(world.clock.at)
        assert hint is not None
        hinted.append(hint.subject.id)
        void(world.turn(hint.subject.id))
    assert (seen, hinted) == ([[]], others)
    assert [one.run_id for one in world.attempts] == runs
    world.drain()
    assert [one.run_id for one in world.attempts] == [*runs, first]


@pytest.mark.parametrize("comes", [False, True])
def test_a_suspect_that_ends_while_it_waits_keeps_nobody_waiting(comes: bool) -> None:
    world = World(STEP)
    ended, waiting = world.start(), world.start()
    for run_id in (ended, waiting):
        lose(world, run_id, limits.SUSPECT_LOST_LEASES)
    void(list(world.delays()))
    assert world.isolation.enter(other())
    void((world.turn(ended), world.turn(waiting)))
    void(world.controls.cancel("demo", "orders", ended))
    if comes:
        void(world.turn(ended))
        assert world.isolation.leave() == about_run(waiting, "demo")
        assert world.turn(waiting).status is Status.SUCCEEDED
    else:
        following = world.isolation.leave()
        assert following == about_run(ended, "demo")
        void(world.turn(ended))
        world.drain()
        assert world.head(waiting).status is Status.SUCCEEDED


def test_a_suspect_runs_alone_until_it_moves_and_gives_its_place_back() -> None:
    """At once, although the step that follows takes long."""
    world, run_id = suspect(STEP, replace(STEP, ordinal=1, key="b"))
    taken: list[bool] = []
    hinted: list[list[int]] = []

    def meanwhile(attempt: Attempt) -> None:
        taken.append(world.isolation.taken)
        if attempt.step == "a":
            assert not world.isolation.enter(other())
        hinted.append(list(world.delays()))

    world.during = meanwhile
    assert world.turn(run_id).status is Status.SUCCEEDED
    assert [one.step for one in world.isolation.seen] == ["a"]
    assert [one.step for one in world.attempts] == ["a", "b"]
    assert (taken, hinted) == ([True, False], [[], [0]])
    assert world.isolation.enter(other())


def test_a_host_that_is_restarted_however_often_fails_nothing() -> None:
    world = World(STEP)
    run_id = world.start()
    lose(world, run_id, 13)
    assert drive(world, run_id) is Status.SUCCEEDED


def test_what_ends_its_process_fails_alone_after_eight_deaths() -> None:
    world = World(STEP)
    guilty, innocent = world.start(), world.start()
    world.during = lambda attempt: die() if attempt.run_id == guilty else None
    assert crash(world, guilty) == limits.SUSPECT_LOST_LEASES
    assert len(world.isolation.deaths) == limits.MAX_ALONE_LOSSES
    (record,) = world.journal(guilty).records
    assert (record.code, record.attempt) == ("worker_lost", 1)
    assert drive(world, innocent) is Status.SUCCEEDED


def test_an_innocent_run_never_fails_beside_a_guilty_one() -> None:
    """Each process takes up the innocent one first, and has it in hand when the other strikes."""
    world = World(STEP)
    innocent, guilty = world.start(), world.start()

    def strike(attempt: Attempt) -> None:
        if attempt.run_id == guilty:
            die()
        if world.head(guilty).live:
            world.advance.run(guilty, "demo", 60_000)

    world.during = strike
    for _ in range(20):
        for run_id in (innocent, guilty):
            try:
                world.advance.run(run_id, "demo", 60_000)
            except KeyboardInterrupt:
                world.isolation.taken = False
                break
        world.clock.at += LOST
    assert world.head(innocent).status is Status.SUCCEEDED
    assert world.head(guilty).status is Status.FAILED
    assert world.journal(guilty).records[0].code == "worker_lost"


@pytest.mark.parametrize("parallel", [False, True])
def test_a_step_that_lost_its_worker_too_often_is_compensated_like_any_other(
    parallel: bool,
) -> None:
    """The lost workers count against that step alone, not against the others' compensations."""
    world = World(action(0), *(fan(2, first=1) if parallel else (action(1),)))
    script = Script(world)
    run_id = world.start()
    world.during = lambda attempt: die() if attempt.step in {"s1", "s3"} else None
    assert crash(world, run_id) == limits.SUSPECT_LOST_LEASES
    assert len(world.isolation.deaths) == limits.MAX_ALONE_LOSSES
    found = statuses(world, run_id)
    assert found["compensate:s0"] is StepStatus.SUCCEEDED
    assert [key for key, status in found.items() if status is StepStatus.FAILED] == (
        ["s3", "join1"] if parallel else ["s1"]
    )
    assert ("compensate:s2" in found) is parallel
    assert script.seen[-1] == "compensate:s0"
    failure = world.journal(run_id).failure
    assert failure is not None
    assert (failure.code, failure.stuck) == ("child_failed" if parallel else "worker_lost", False)


# --- where suspects have a lane of their own ------------------------------------------------------


def test_the_shared_lane_leaves_a_suspect_alone_and_sends_it_on() -> None:
    world, run_id = suspect()
    lose(world, run_id, 1)
    before = world.head(run_id)
    world.advance.run(run_id, "demo", 60_000, lane=Lane.SHARED)
    assert world.head(run_id).lease_token == before.lease_token
    hint = world.hints.pop_due(world.clock.at)
    assert hint is not None
    assert (hint.subject.id, hint.alone) == (run_id, True)
    world.advance.run(run_id, "demo", 60_000, lane=Lane.ALONE)
    assert world.head(run_id).status is Status.SUCCEEDED
    assert world.isolation.seen == []


def test_a_claim_in_the_shared_lane_that_makes_a_suspect_releases_it() -> None:
    world = World(STEP)
    run_id = world.start()
    list(world.delays())
    lose(world, run_id, limits.SUSPECT_LOST_LEASES)
    world.advance.run(run_id, "demo", 60_000, lane=Lane.SHARED)
    head = world.head(run_id)
    assert (head.lease_token, head.lost_leases, world.attempts) == (None, 3, [])
    hint = world.hints.pop_due(world.clock.at)
    assert hint is not None
    assert hint.alone


def test_five_losses_in_the_lane_fail_the_step() -> None:
    world = World(STEP)
    run_id = world.start()
    lose(world, run_id, limits.SUSPECT_LOST_LEASES, Lane.SHARED)
    lose(world, run_id, limits.MAX_ALONE_LOSSES, Lane.ALONE)
    world.advance.run(run_id, "demo", 60_000, lane=Lane.ALONE)
    assert world.head(run_id).status is Status.FAILED
    assert world.journal(run_id).records[0].code == "worker_lost"
    assert world.attempts == []


def test_a_recorded_outcome_ends_the_losses_of_the_lane() -> None:
    world = World(STEP)
    run_id = world.start()
    lose(world, run_id, limits.SUSPECT_LOST_LEASES, Lane.SHARED)
    lose(world, run_id, limits.MAX_ALONE_LOSSES - 1, Lane.ALONE)
    world.outcomes = [Failed("no")]
    world.advance.run(run_id, "demo", 60_000, lane=Lane.ALONE)
    head = world.head(run_id)
    assert (head.alone_losses, head.alone, head.suspect) == (0, False, True)


def test_a_worker_that_came_to_be_alone_runs_one_attempt_at_a_time_also_once_the_run_moved() -> (
    None
):
    """Its loss counts against the attempt in turn: no other may have been in flight."""
    world = World(STEP, *fan(3, first=1))
    run_id = world.start()
    lose(world, run_id, limits.SUSPECT_LOST_LEASES, Lane.SHARED)
    recorded: list[int] = []

    def during(_: Attempt) -> None:
        assert world.head(run_id).alone
        recorded.append(len(world.journal(run_id).records))

    world.during = during
    world.advance.run(run_id, "demo", 60_000, lane=Lane.ALONE)
    assert world.head(run_id).status is Status.SUCCEEDED
    assert recorded == [0, 2, 3, 4]  # the fan-out itself is one of them


@pytest.mark.parametrize("lane", Lane)
def test_a_claim_that_was_not_answered_is_repeated_in_its_lane_only(lane: Lane) -> None:
    world = World(STEP)
    run_id = world.start()
    world.runs.lose_answer_of = ["claim"] * 3
    with pytest.raises(Unavailable):
        world.advance.run(run_id, "demo", 60_000, lane=Lane.ALONE)
    token = world.head(run_id).lease_token
    assert token is not None
    world.advance.run(run_id, "demo", 60_000, lane=lane)
    head = world.head(run_id)
    assert (head.status is Status.SUCCEEDED) is (lane is Lane.ALONE)
    assert (head.lease_token == token) is (lane is not Lane.ALONE)
    world.advance.run(run_id, "demo", 60_000, lane=Lane.ALONE)
    assert world.head(run_id).status is Status.SUCCEEDED


@pytest.mark.parametrize("more", [0, 1])
def test_of_claims_that_were_not_answered_the_oldest_is_forgotten(more: int) -> None:
    unanswered = Unanswered()
    for number in range(MOST_UNANSWERED + more):
        unanswered.keep(f"run-{number}", Lane.HOST, f"token-{number}")
    assert unanswered.take("run-0", Lane.HOST) == (None if more else "token-0")
    assert unanswered.take("run-1", Lane.HOST) == "token-1"
    assert unanswered.take("run-1", Lane.HOST) is None


# --- whose turn it is -----------------------------------------------------------------------------


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
    assert crash(world, run_id) == limits.SUSPECT_LOST_LEASES
    records = {record.key: record for record in world.journal(run_id).records}
    assert (records["s1"].status, records["s2"].code) == (StepStatus.SUCCEEDED, "worker_lost")


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
    # The other compensation succeeded meanwhile, and with it the run had moved.
    assert crash(world, run_id) == 2 * limits.SUSPECT_LOST_LEASES
    found = statuses(world, run_id)
    assert found["compensate:s2"] is StepStatus.FAILED
    assert found.get("compensate:s1") is not StepStatus.FAILED
