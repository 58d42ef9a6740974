"""Orders of events that the simulator found: each was a defect once."""

from dataclasses import replace

import pytest

from stepwell_engine.core.definition import Kind, Step
from stepwell_engine.core.run import Status
from stepwell_engine.ports import Commit, Written
from tests.service.world import World, void


def wait(ordinal: int, timeout: int = 60_000) -> Step:
    return Step(
        ordinal, f"s{ordinal}", Kind.WAIT_FOR_SIGNAL, signal="approved", timeout=timeout
    )


def test_a_signal_that_comes_while_its_wait_expires_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(wait(0))
    run_id = world.start()
    assert world.turn(run_id).status is Status.WAITING
    world.clock.at += 60_000
    commit = world.runs.commit
    letters = ["mail-1"]

    def after_the_signal(written: Commit) -> Written:
        if letters:
            void(world.controls.deliver("demo", "orders", run_id, letters.pop(), "approved", b"7"))
        return commit(written)

    monkeypatch.setattr(world.runs, "commit", after_the_signal)
    assert world.turn(run_id).status is Status.SUCCEEDED
    assert world.journal(run_id).records[0].output == b"7"
