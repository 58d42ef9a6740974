"""What can never be stored fails its step once, and nothing beside it."""

import pytest

from stepwell_engine.core.run.attempt import Attempt, Failed, Succeeded
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.errors import Unstorable
from stepwell_engine.ports import Commit, Written
from tests.service.fanouts import Script, action, fan, statuses
from tests.service.world import FlakyRuns, World

ROOM = 1_000  # bytes of one blob
LARGE = Succeeded(b'"%s"' % (b"x" * ROOM))
MEDIUM = Succeeded(b'"%s"' % (b"x" * 500))
TEXT = "the outcome cannot be stored: too big"


class SmallRuns(FlakyRuns):
    """Takes no blob above ROOM."""

    def commit(self, commit: Commit) -> Written:
        if any(len(blob.data) > ROOM for blob in commit.blobs):
            raise Unstorable("too big")
        return super().commit(commit)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.service.world.FlakyRuns", SmallRuns)


def errors(world: World, run_id: str) -> list[str]:
    journal = world.journal(run_id)
    return [one.error for one in (*journal.records, *journal.open) if one.error]


def test_a_sibling_in_hand_beside_it_is_recorded_as_it_came_out() -> None:
    world = World(*fan(3))
    script = Script(world)
    script.outcomes = {"s1": [MEDIUM], "s2": [LARGE], "s3": [MEDIUM]}
    run_id = world.start()
    world.drain()
    assert world.head(run_id).status is Status.FAILED
    assert script.seen[:3] == ["s1", "s2", "s3"]
    assert sorted(script.seen[3:]) == ["compensate:s1", "compensate:s3"]
    assert statuses(world, run_id)["s2"] is StepStatus.FAILED


def test_every_outcome_that_is_too_large_fails_its_own_step() -> None:
    world = World(*fan(3, compensated=False))
    script = Script(world)
    script.outcomes = {"s1": [LARGE], "s2": [LARGE]}
    run_id = world.start()
    world.drain()
    assert script.seen == ["s1", "s2", "s3"]
    found = statuses(world, run_id)
    assert [found[key] for key in ("s1", "s2", "s3")] == [
        StepStatus.FAILED,
        StepStatus.FAILED,
        StepStatus.SUCCEEDED,
    ]


def test_a_second_step_under_the_same_lease_fails_as_the_first_did() -> None:
    world = World(action(0), action(1))
    script = Script(world)
    script.outcomes = {"s1": [LARGE], "compensate:s0": [LARGE]}
    run_id = world.start()
    world.drain()
    head = world.head(run_id)
    assert (head.status, head.lost_leases) == (Status.FAILED, 0)
    assert script.seen == ["s0", "s1", "compensate:s0"]
    failure = world.journal(run_id).failure
    assert failure is not None
    assert failure.message == (f'compensation of step "s0" failed, rollback stopped: {TEXT}')


def test_in_a_run_that_was_cancelled_meanwhile_it_is_recorded_as_failed() -> None:
    world = World(action(0, compensated=False), action(1))
    script = Script(world)
    script.outcomes = {"s0": [LARGE]}

    def cancel(_: Attempt) -> None:
        world.controls.cancel("demo", "orders", run_id)

    world.during = cancel
    run_id = world.start()
    world.drain()
    head = world.head(run_id)
    assert (head.status, head.lease_token, script.seen) == (Status.CANCELLED, None, ["s0"])
    assert statuses(world, run_id)["s0"] is StepStatus.FAILED
    assert errors(world, run_id) == [TEXT]


def test_what_cannot_even_be_stored_as_a_failure_is_a_defect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(action(0))
    script = Script(world)
    script.outcomes = {"s0": [Failed("no", retryable=False)]}
    run_id = world.start()

    def never(_: Commit) -> Written:
        raise Unstorable("too big")

    monkeypatch.setattr(world.runs, "commit", never)
    with pytest.raises(RuntimeError, match="not even a failure can be stored: too big"):
        world.turn(run_id)
