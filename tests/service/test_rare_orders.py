"""Orders of events that the simulator found: each was a defect once."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.run.attempt import Attempt, Failed, Succeeded
from stepwell_engine.core.run.head import Blob
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.ports import Commit, Written
from tests.service.world import World, void


def wait(ordinal: int, timeout: int = 60_000) -> Step:
    return Step(ordinal, f"s{ordinal}", Kind.WAIT_FOR_SIGNAL, signal="approved", timeout=timeout)


def test_a_signal_that_comes_while_its_wait_expires_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(wait(0))
    run_id = world.start()
    assert world.turn(run_id).status is Status.WAITING
    world.clock.at += 60_000
    commit = world.runs.commit
    messages = [b"7"]

    def after_the_signal(written: Commit) -> Written:
        if messages:
            void(world.controls.signal("demo", "orders", run_id, "approved", messages.pop()))
        return commit(written)

    monkeypatch.setattr(world.runs, "commit", after_the_signal)
    assert world.turn(run_id).status is Status.SUCCEEDED
    assert world.journal(run_id).records[0].output == b"7"


def die(_: object) -> None:
    raise KeyboardInterrupt


def test_closing_a_cancelled_run_loses_no_step_of_a_full_journal() -> None:
    text = "".join(f"{n:x}" for n in range(600))
    world = World(Step(0, "s0", Kind.FUNCTION, "f", max_attempts=3, timeout=30_000))
    world.outcomes = [Failed(text)]
    run_id = world.start()
    world.turn(run_id)
    world.clock.at += 2_000
    world.during = die
    with pytest.raises(KeyboardInterrupt):
        world.turn(run_id)
    world.controls.cancel("demo", "orders", run_id)
    world.clock.at = world.head(run_id).lease_expires_at + limits.CLOCK_MARGIN + 1
    assert world.turn(run_id).lease_token is None
    (record,) = world.journal(run_id).records
    assert (record.status, record.error) == (StepStatus.CANCELLED, text)


def test_a_cancelled_run_of_an_unreadable_version_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unreadable(*_: object) -> None:
        raise ValueError("step 0 has no key")

    world = World(wait(0))
    run_id = world.start()
    world.runs.claim(run_id, "dead", world.clock.at, world.clock.at + limits.LEASE)
    world.controls.cancel("demo", "orders", run_id)
    world.clock.at += limits.LEASE + limits.CLOCK_MARGIN + 1
    monkeypatch.setattr(world, "load", unreadable)
    head = world.turn(run_id)
    assert (head.status, head.lease_token, head.wake_at) == (Status.CANCELLED, None, None)


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
