"""A run with a deadline ends as timed out, whoever comes first; one that is revived goes on."""

from dataclasses import replace
from functools import partial

import pytest

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.run.attempt import Attempt, Failed
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal_codec import JournalCodec
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.errors import Unavailable
from stepwell_engine.ports import Commit, Done, Revival, Written
from stepwell_engine.service.worker.sweep import Sweep
from tests.service.actions import action, two_actions
from tests.service.families import action as one_attempt
from tests.service.families import family, nap
from tests.service.world import World, void

IN = 40_000  # ms from the start to the deadline
TAKEN_OVER = limits.LEASE + limits.CLOCK_MARGIN + 1


def with_deadline(world: World, run_id: str, after: int = IN) -> int:
    """Give a run a deadline, as nothing does yet."""
    head = world.head(run_id)
    deadline = world.clock.at + after
    wake_at = min(head.wake_at or deadline, deadline)
    world.runs._put(replace(head, deadline=deadline, wake_at=wake_at, format=2))
    return deadline


def statuses(world: World, run_id: str) -> dict[str, StepStatus]:
    return {one.key: one.status for one in world.journal(run_id).records}


def passes(world: World, ms: int) -> None:
    def during(_: Attempt) -> None:
        world.clock.at += ms

    world.during = during


def revive(world: World, run_id: str, deadline: int | None = None) -> Head:
    """Let a run that failed or timed out go on with what did not succeed, as nothing does yet."""
    head, journal = world.head(run_id), world.journal(run_id)
    kept = tuple(one for one in journal.records if one.status is StepStatus.SUCCEEDED)
    codec = JournalCodec(head.created_at, world.load("demo", head.workflow, 1).keys)
    data = codec.encode(replace(journal, records=kept, open=(), failure=None))
    again = Revival(run_id, head.generation, head.commit_seq, data, world.clock.at, deadline)
    written = world.runs.revive(again)
    assert isinstance(written, Done)
    return written.head


# --- a deadline -------------------------------------------------------------------------------


@pytest.mark.parametrize(("lasts", "begun"), [(IN - 1, 2), (IN, 1)])
def test_no_step_begins_at_the_deadline(lasts: int, begun: int) -> None:
    world = two_actions()
    run_id = world.start()
    with_deadline(world, run_id)
    passes(world, lasts)
    assert world.turn(run_id).status is Status.TIMED_OUT
    assert len(world.attempts) == begun


def test_a_run_that_ends_before_its_deadline_has_none_any_more() -> None:
    world = two_actions()
    run_id = world.start()
    with_deadline(world, run_id)
    passes(world, IN // 2 - 1)
    head = world.turn(run_id)
    assert (head.status, head.wake_at) == (Status.SUCCEEDED, None)


def test_the_outcome_in_flight_is_recorded_and_nothing_moves() -> None:
    world = two_actions()
    run_id = world.start()
    deadline = with_deadline(world, run_id)
    passes(world, IN + 5)
    head = world.turn(run_id)
    assert (head.status, head.ended_at) == (Status.TIMED_OUT, deadline + 5)
    assert (head.lease_token, head.wake_at) == (None, None)
    journal = world.journal(run_id)
    assert statuses(world, run_id) == {"s0": StepStatus.SUCCEEDED}
    assert (journal.position, journal.attempts) == (0, 1)
    assert len(list(world.delays())) == 1  # of the start


def test_a_parked_run_is_timed_out_by_the_hint_for_its_deadline() -> None:
    world = World(Step(0, "nap", Kind.SLEEP, sleep_for=3_600_000))
    run_id = world.start()
    deadline = with_deadline(world, run_id)
    void(list(world.delays()))
    head = world.turn(run_id)
    assert (head.status, head.wake_at) == (Status.SLEEPING, deadline)
    assert list(world.delays()) == [IN]
    world.clock.at = deadline
    head = world.turn(run_id)
    assert (head.status, head.ended_at, head.wake_at) == (Status.TIMED_OUT, deadline, None)


@pytest.mark.parametrize(("early", "ends"), [(2_000, True), (2_001, False)])
def test_a_hint_a_little_before_the_deadline_waits_for_it(early: int, ends: bool) -> None:
    world = World(Step(0, "nap", Kind.SLEEP, sleep_for=3_600_000))
    run_id = world.start()
    deadline = with_deadline(world, run_id)
    world.turn(run_id)
    world.clock.at = deadline - early
    assert world.turn(run_id).status is (Status.TIMED_OUT if ends else Status.SLEEPING)


def test_a_run_that_another_worker_holds_is_timed_out_and_its_lease_stays() -> None:
    world = two_actions()
    run_id = world.start()
    deadline = with_deadline(world, run_id)
    until = world.clock.at + limits.LEASE
    world.runs.claim(run_id, "other", world.clock.at, until)
    world.clock.at = deadline
    head = world.turn(run_id)
    assert (head.status, head.lease_token) == (Status.TIMED_OUT, "other")
    assert head.wake_at == until
    world.clock.at = until + limits.CLOCK_MARGIN + 1
    head = world.turn(run_id)
    assert (head.lease_token, head.wake_at, head.lost_leases) == (None, None, 0)
    assert statuses(world, run_id) == {"s0": StepStatus.CANCELLED}


def test_a_stopped_run_is_closed_by_the_hint_for_its_leases_end_in_spite_of_the_margin() -> None:
    world = two_actions()
    run_id = world.start()
    deadline = with_deadline(world, run_id)
    until = world.clock.at + limits.LEASE
    world.runs.claim(run_id, "other", world.clock.at, until)
    world.clock.at = deadline
    world.turn(run_id)
    world.clock.at = until
    void(list(world.delays()))
    world.turn(run_id)
    assert list(world.delays()) == [limits.CLOCK_MARGIN + 1]


def test_a_long_attempt_has_the_tick_look_at_the_deadline() -> None:
    world = World(replace(action(0), timeout=600_000))
    run_id = world.start()
    deadline = with_deadline(world, run_id, 100_000)
    seen: list[int | None] = []
    world.during = lambda _: seen.append(world.head(run_id).wake_at)
    world.turn(run_id)
    assert seen == [deadline]


def test_the_tick_times_out_what_nobody_hints() -> None:
    world = World(Step(0, "nap", Kind.SLEEP, sleep_for=3_600_000))
    run_id = world.start()
    deadline = with_deadline(world, run_id)
    world.turn(run_id)
    void(list(world.delays()))
    world.clock.at = deadline - 1
    Sweep(world.runs, world.hints, world.clock, limits.TICK).tick(None)
    world.drain()
    assert world.head(run_id).status is Status.TIMED_OUT


def test_a_parent_learns_that_its_child_timed_out() -> None:
    world, run_id = family(nap(0, 3_600_000))
    world.turn(run_id)
    (child,) = world.children("child")
    deadline = with_deadline(world, child.run_id, 1_000)
    world.turn(child.run_id)
    world.clock.at = deadline
    world.turn(child.run_id)
    assert not world.head(child.run_id).notify_pending
    (message,) = world.head(run_id).inbox.values()
    assert message.name == "timed_out"


# --- a place under a concurrency limit --------------------------------------------------------


@pytest.mark.parametrize(("more", "begins"), [(0, False), (1, True)])
def test_an_attempt_begins_only_if_it_ends_before_its_place_is_over(
    more: int, begins: bool
) -> None:
    world = World(action(0))
    run_id = world.start()
    needed = world.definition.steps[0].timeout + limits.CLOCK_MARGIN
    advance = partial(world.advance.run, run_id, "demo", 60_000)
    advance(gate_expires_at=world.clock.at + needed + more)
    assert bool(world.attempts) is begins
    if not begins:
        head = world.head(run_id)
        assert (head.status, head.lease_token, head.lost_leases) == (Status.PENDING, None, 0)
        assert 0 in list(world.delays())


# --- a new generation -------------------------------------------------------------------------


def test_a_failed_run_goes_on_from_the_step_that_failed() -> None:
    world = two_actions()
    run_id = world.start()
    world.outcomes = [Failed("once", retryable=False)]
    assert world.turn(run_id).status is Status.FAILED
    assert revive(world, run_id).generation == 1
    head = world.turn(run_id)
    assert (head.status, head.generation) == (Status.SUCCEEDED, 1)
    assert [one.step for one in world.attempts] == ["s0", "s0", "s1"]


def test_a_timed_out_run_goes_on_until_its_new_deadline() -> None:
    world = two_actions()
    run_id = world.start()
    with_deadline(world, run_id, 0)
    assert world.turn(run_id).status is Status.TIMED_OUT
    deadline = world.clock.at + IN
    revive(world, run_id, deadline)
    passes(world, IN)
    assert world.turn(run_id).status is Status.TIMED_OUT
    assert len(world.attempts) == 1


def test_a_parent_is_told_of_the_first_end_alone() -> None:
    world, run_id = family(one_attempt(0))
    world.outcomes = [Failed("once"), Failed("twice")]
    world.drain()
    parent = world.head(run_id)
    assert parent.status is Status.FAILED
    child = world.children("child")[0].run_id
    assert revive(world, child).told
    world.turn(child)
    head = world.head(child)
    assert (head.status, head.notify_pending, head.wake_at) == (Status.SUCCEEDED, False, None)
    assert world.head(run_id) == parent


def test_an_outcome_of_an_earlier_generation_is_not_recorded_in_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = two_actions()
    run_id = world.start()
    with_deadline(world, run_id)
    real = world.runs.commit

    def closed_and_revived(commit: Commit) -> Written:
        monkeypatch.setattr(world.runs, "commit", real)
        world.clock.at += TAKEN_OVER
        world.turn(run_id)
        assert world.head(run_id).status is Status.TIMED_OUT
        revive(world, run_id)
        return real(commit)

    monkeypatch.setattr(world.runs, "commit", closed_and_revived)
    world.turn(run_id)
    head = world.head(run_id)
    assert (head.generation, head.lease_token, head.journal != b"") == (1, None, True)
    assert world.journal(run_id).records == ()


def test_a_cancel_of_a_run_that_was_revived_meanwhile_cancels_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = two_actions()
    run_id = world.start()
    world.outcomes = [Failed("once", retryable=False)]
    world.turn(run_id)
    seen = world.head(run_id)
    revive(world, run_id)
    monkeypatch.setattr(world.runs, "get", lambda _: seen)  # as it was read before
    assert world.controls.cancel("demo", "orders", run_id).status is Status.CANCELLED


def test_a_late_end_of_an_earlier_generation_ends_nothing() -> None:
    world = two_actions()
    run_id = world.start()
    world.outcomes = [Failed("once", retryable=False)]
    world.turn(run_id)
    late = partial(world.runs.cancel, run_id, world.clock.at, generation=0)
    head = revive(world, run_id)
    void(late())
    assert world.head(run_id) == head


def test_a_child_that_was_revived_before_it_began_goes_on() -> None:
    world, run_id = family(action(0))
    world.turn(run_id)
    (child,) = world.children("child")
    with_deadline(world, child.run_id, 0)
    world.turn(child.run_id)
    head = world.head(child.run_id)
    assert head.status is Status.TIMED_OUT
    again = Revival(child.run_id, 0, head.commit_seq, b"", world.clock.at)
    assert isinstance(world.runs.revive(again), Done)
    assert world.turn(child.run_id).status is Status.SUCCEEDED


def test_a_store_that_does_not_time_out_leaves_the_hint_to_be_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = two_actions()
    run_id = world.start()
    with_deadline(world, run_id, 0)

    def down(run_id: str, now: int, generation: int) -> Written:
        raise Unavailable("down")

    monkeypatch.setattr(world.runs, "time_out", down)
    with pytest.raises(Unavailable):
        world.turn(run_id)
    assert world.head(run_id).status is Status.PENDING
