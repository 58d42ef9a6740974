"""One worker and one run: each rule of the protocol, one at a time."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.declared.program import DeclaredProgram
from stepwell_engine.core.run.attempt import Attempt, Failed, Succeeded
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.status import Status
from stepwell_engine.errors import NewerFormat, StoreError, Unavailable
from stepwell_engine.ports import Done
from stepwell_engine.service.worker.sweep import Sweep
from tests.service.actions import action, two_actions
from tests.service.world import START, World, void


def test_quick_steps_cost_one_claim_and_one_write_each() -> None:
    world = World(*(action(n) for n in range(5)))
    head = world.turn(world.start())
    assert head.status is Status.SUCCEEDED
    assert len(world.runs.seen) == 5
    assert (head.commit_seq, head.lease_token, head.wake_at) == (5, None, None)
    assert head.ended_at == world.clock.at


def test_a_run_whose_lease_is_in_force_is_left_alone() -> None:
    world = two_actions()
    run_id = world.start()
    world.runs.claim(run_id, "other", world.clock.at, world.clock.at + limits.LEASE)
    world.clock.at += limits.LEASE + limits.CLOCK_MARGIN
    assert world.turn(run_id).lease_token == "other"
    assert world.attempts == []


@pytest.mark.parametrize(("early", "hinted"), [(2_001, False), (2_000, True), (-2_000, True)])
def test_a_hint_for_the_end_of_a_lease_comes_again_when_the_margin_is_over(
    early: int, hinted: bool
) -> None:
    world = two_actions()
    run_id = world.start()
    until = world.clock.at + limits.LEASE
    world.runs.claim(run_id, "dead", world.clock.at, until)
    world.clock.at = until - early
    void(list(world.delays()))
    world.turn(run_id)
    delay = early + limits.CLOCK_MARGIN + 1
    assert list(world.delays()) == ([delay] if hinted else [])
    world.clock.at += delay
    assert world.turn(run_id).status is Status.SUCCEEDED


def test_an_expired_lease_is_taken_after_the_margin_and_counted_as_lost() -> None:
    world = two_actions()
    run_id = world.start()
    world.runs.claim(run_id, "dead", world.clock.at, world.clock.at + limits.LEASE)
    world.clock.at += limits.LEASE + limits.CLOCK_MARGIN + 1
    seen: list[int] = []
    world.during = lambda _: seen.append(world.head(run_id).lost_leases)
    assert world.turn(run_id).status is Status.SUCCEEDED
    assert seen == [1, 0]
    assert world.attempts[0].number == 1


def test_a_stale_worker_writes_nothing_and_stops() -> None:
    world = two_actions()
    run_id = world.start()

    def lose_the_lease(attempt: Attempt) -> None:
        world.clock.at += limits.LEASE + limits.CLOCK_MARGIN + 1
        world.runs.claim(run_id, "new", world.clock.at, world.clock.at + limits.LEASE)

    world.during = lose_the_lease
    head = world.turn(run_id)
    assert (head.lease_token, head.commit_seq, head.journal) == ("new", 0, b"")
    assert len(world.attempts) == 1


def test_an_act_longer_than_the_lease_extends_it_first() -> None:
    world = World(action(0, timeout=600_000))
    run_id = world.start()
    leases: list[int] = []
    world.during = lambda _: leases.append(world.head(run_id).lease_expires_at - world.clock.at)
    assert world.turn(run_id).status is Status.SUCCEEDED
    assert leases[0] > 600_000 + limits.CLOCK_MARGIN


def test_an_attempt_has_a_deadline_that_comes_before_the_end_of_its_lease() -> None:
    world = World(replace(action(0), timeout=600_000), action(1))
    ends: list[int] = []

    def during(attempt: Attempt) -> None:
        ends.append(world.head(attempt.run_id).lease_expires_at)
        world.clock.at += 1_000

    world.during = during
    world.turn(world.start())
    assert [one.deadline for one in world.attempts] == [START + 600_000, START + 1_000 + 30_000]
    for attempt, end in zip(world.attempts, ends, strict=True):
        assert (attempt.deadline or 0) + limits.CLOCK_MARGIN < end


def test_a_hard_budget_begins_no_act_that_could_end_after_it() -> None:
    world = World(action(0, timeout=30_000), action(1, timeout=30_001))
    run_id = world.start()
    list(world.delays())
    world.advance.run(run_id, "demo", 30_000, hard=True)
    head = world.head(run_id)
    assert [attempt.step for attempt in world.attempts] == ["s0"]
    assert (head.status, head.lease_token, head.ready_at) == (Status.PENDING, None, 0)
    assert head.wake_at == world.clock.at
    assert list(world.delays()) == [0]
    world.advance.run(run_id, "demo", 30_001, hard=True)
    assert world.head(run_id).status is Status.SUCCEEDED


def test_an_act_may_outlast_a_budget_that_is_not_hard() -> None:
    world = World(action(0, timeout=600_000))
    assert world.turn(world.start(), budget=1).status is Status.SUCCEEDED


def test_a_budget_that_is_spent_puts_the_run_back() -> None:
    world = two_actions()
    run_id = world.start()
    world.during = lambda _: world.clock.sleep(5_000)
    head = world.turn(run_id, budget=5_000)
    assert (head.status, head.lease_token, len(world.attempts)) == (Status.PENDING, None, 1)
    assert world.turn(run_id, budget=0).status is Status.PENDING
    assert len(world.attempts) == 1


def test_a_lost_answer_to_a_commit_records_once_and_goes_on() -> None:
    world = two_actions()
    run_id = world.start()
    world.runs.lose_answer_of = ["commit", "claim"]
    assert world.turn(run_id).status is Status.SUCCEEDED
    assert [attempt.step for attempt in world.attempts] == ["s0", "s1"]
    assert [record.key for record in world.journal(run_id).records] == ["s0", "s1"]


def test_a_run_that_is_ready_soon_is_waited_for_a_hint_that_comes_earlier_is_dropped() -> None:
    world = World(Step(0, "nap", Kind.SLEEP, sleep_for=5_000), action(1))
    run_id = world.start()
    assert world.turn(run_id).status is Status.SLEEPING
    assert list(world.delays()) == [0, 5_000]
    for early in (5_000, limits.CLAIM_WAIT + 1):
        world.clock.at = START + 5_000 - early
        assert world.turn(run_id).status is Status.SLEEPING
        assert list(world.delays()) == []
    world.clock.at = START + 5_000 - limits.CLAIM_WAIT
    head = world.turn(run_id)
    assert head.status is Status.SUCCEEDED
    assert world.clock.at == START + 5_000


def test_a_far_wake_up_is_left_to_the_tick() -> None:
    world = World(Step(0, "nap", Kind.SLEEP, sleep_for=limits.MAX_HINT_DELAY + 1))
    run_id = world.start()
    world.turn(run_id)
    assert list(world.delays()) == [0]
    sweep = Sweep(world.runs, world.hints, world.clock, look_ahead=1_000)
    assert sweep.tick().hints == 0
    world.clock.at += limits.MAX_HINT_DELAY
    assert sweep.tick().hints == 1
    assert list(world.delays()) == [1]


def test_a_message_that_comes_before_the_park_is_read_instead_of_parking() -> None:
    world = World(action(0), Step(1, "w", Kind.WAIT_FOR_SIGNAL, signal="go", timeout=99_000))
    run_id = world.start()
    world.during = lambda _: void(world.controls.signal("demo", "orders", run_id, "go", b'"yes"'))
    head = world.turn(run_id)
    assert head.status is Status.SUCCEEDED
    assert dict(head.inbox) == {}
    assert world.journal(run_id).records[1].output == b'"yes"'


def test_a_message_wakes_a_parked_run_without_ending_its_wait() -> None:
    world = World(Step(0, "w", Kind.WAIT_FOR_SIGNAL, signal="go", timeout=99_000))
    run_id = world.start()
    world.turn(run_id)
    world.controls.signal("demo", "orders", run_id, "other", b"1")
    head = world.turn(run_id)
    assert (head.status, head.ready_at) == (Status.WAITING, START + 99_000)


def test_a_run_out_of_time_is_put_back_ready_with_a_hint() -> None:
    world = two_actions()
    run_id = world.start()
    list(world.delays())
    world.during = lambda _: world.clock.sleep(10)
    head = world.turn(run_id, budget=10)
    assert (head.status, head.lease_token, head.ready_at) == (Status.PENDING, None, 0)
    assert head.wake_at is not None
    assert head.wake_at <= world.clock.at + limits.LEASE
    assert list(world.delays()) == [0]
    assert world.turn(run_id).status is Status.SUCCEEDED


def test_a_runner_that_raises_is_a_failed_attempt() -> None:
    world = two_actions()
    run_id = world.start()

    def defect(attempt: Attempt) -> None:
        raise RuntimeError("bad wheel")

    world.during = defect
    world.turn(run_id)
    assert "bad wheel" in (world.journal(run_id).open[0].error or "")


def test_a_definition_that_cannot_be_loaded_fails_the_run_structurally() -> None:
    world = two_actions()
    run_id = world.start()

    def broken(project: str, workflow: str, version: int) -> DeclaredProgram:
        raise ValueError("steps[0]: no such kind")

    world.load = broken  # type: ignore[method-assign]
    assert world.turn(run_id).status is Status.FAILED
    failure = world.journal(run_id).failure
    assert failure is not None
    assert "no such kind" in failure.message


def test_a_run_of_a_newer_definition_format_is_put_back_untouched() -> None:
    world = two_actions()
    run_id = world.start()

    def newer(project: str, workflow: str, version: int) -> DeclaredProgram:
        raise NewerFormat("version 1", 2, 1)

    world.load = newer  # type: ignore[method-assign]
    head = world.turn(run_id)
    assert (head.status, head.lease_token, head.journal) == (Status.PENDING, None, b"")
    assert head.wake_at == START + limits.LEASE


def test_a_run_whose_journal_is_of_a_newer_format_is_put_back_untouched() -> None:
    """Left with its lease, it would count a lost worker at each claim, and fail of that."""
    world = two_actions()
    newer = b"[%d,0,0,null,[],[],[]]" % (limits.RUN_FORMAT + 1)
    head = Head("new", "demo", "orders", 1, START, wake_at=START, journal=newer)
    assert isinstance(world.runs.create(head), Done)
    for _ in range(limits.MAX_ALONE_LOSSES + 2):
        world.clock.at = max(world.clock.at, world.head("new").ready_at)
        world.advance.run("new", "demo", 60_000)
    head = world.head("new")
    assert (head.status, head.lease_token, head.lost_leases) == (Status.PENDING, None, 0)
    assert head.journal == newer
    assert world.attempts == []


def test_a_cancelled_run_of_a_newer_definition_format_is_left_to_a_newer_worker() -> None:
    world = two_actions()
    run_id = world.start()
    assert isinstance(world.runs.claim(run_id, "lost", START, START + 60_000), Done)
    void(world.controls.cancel("demo", "orders", run_id))
    before = world.head(run_id)

    def newer(project: str, workflow: str, version: int) -> DeclaredProgram:
        raise NewerFormat("version 1", 2, 1)

    world.load = newer  # type: ignore[method-assign]
    world.clock.at += 2 * limits.LEASE
    assert world.turn(run_id) == before


def test_a_cancelled_run_whose_journal_is_of_a_newer_format_is_left_to_a_newer_worker() -> None:
    world = two_actions()
    newer = b"[%d,0,0,null,[],[],[]]" % (limits.RUN_FORMAT + 1)
    for cascade in (False, True):
        head = Head(f"new-{cascade}", "demo", "orders", 1, START, wake_at=START, journal=newer)
        assert isinstance(world.runs.create(head), Done)
        assert isinstance(world.runs.claim(head.run_id, "lost", START, START + 60_000), Done)
        assert isinstance(world.runs.cancel(head.run_id, START, cascade), Done)
    world.clock.at += 2 * limits.LEASE
    for run_id in ("new-False", "new-True"):
        before = world.head(run_id)
        assert world.turn(run_id) == before


@pytest.mark.parametrize("error", [Unavailable("no answer"), StoreError("not allowed")])
def test_a_run_whose_definition_cannot_be_read_now_is_put_back_untouched(error: StoreError) -> None:
    """Kept until its lease is over, it would wait for that, and count a worker as lost."""
    world = two_actions()
    run_id = world.start()
    before = world.head(run_id)

    def silent(project: str, workflow: str, version: int) -> DeclaredProgram:
        raise error

    load, world.load = world.load, silent  # type: ignore[method-assign]
    with pytest.raises(type(error), match=str(error)):
        world.turn(run_id)
    head = world.head(run_id)
    assert (head.status, head.lease_token, head.journal) == (before.status, None, before.journal)
    assert head.ready_at == head.wake_at == world.clock.at
    world.load = load  # type: ignore[method-assign]
    seen: list[int] = []
    world.during = lambda _: seen.append(world.head(run_id).lost_leases)
    assert world.turn(run_id).status is Status.SUCCEEDED
    assert seen == [0, 0]


def test_a_head_of_a_newer_format_is_left_alone() -> None:
    world = two_actions()
    newer = Head("new", "demo", "orders", 1, START, format=limits.RUN_FORMAT + 1, wake_at=START)
    assert isinstance(world.runs.create(replace(newer)), Done)
    world.advance.run("new", "demo", 1_000)
    assert world.attempts == []


def test_what_two_writes_of_a_lease_say_differently_has_different_names() -> None:
    """Else a late write of the first, refused one would change what the second refers to."""
    text = "".join(f"{n:x}" for n in range(600))
    action = Step(0, "s0", Kind.FUNCTION, "f", max_attempts=3, timeout=30_000)
    world = World(action, replace(action, ordinal=1, key="s1"))
    world.outcomes = [Succeeded(b'"%s"' % text[:250].encode()), Failed(text)]
    run_id = world.start()

    def cancel(attempt: Attempt) -> None:
        if attempt.step == "s1":
            void(world.controls.cancel("demo", "orders", run_id))

    world.during = cancel
    world.turn(run_id)
    refused, recorded = (dict_of(commit.blobs) for commit in world.runs.seen if commit.blobs)
    assert world.journal(run_id).pages[0].blob in recorded
    assert not refused.keys() & recorded.keys()


def dict_of(blobs: Iterable[Blob]) -> dict[str, bytes]:
    return {blob.name: blob.data for blob in blobs}
