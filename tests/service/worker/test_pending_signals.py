"""Signals beside the head: what a worker reads of them, and what if they are not there."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.run.inbox import Slot
from stepwell_engine.core.run.overflow import Taken
from stepwell_engine.core.run.status import Status
from stepwell_engine.errors import Unavailable
from tests.service.world import FlakyRuns, World

WAITS = 3


class Reading(FlakyRuns):
    """Notes which numbers are read; those of `gone` are not there."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[tuple[int, int]] = []
        self.gone: set[int] = set()

    def overflow(self, run_id: str, first: int, last: int) -> Mapping[int, Slot]:
        self.read.append((first, last))
        found = super().overflow(run_id, first, last)
        return {number: slot for number, slot in found.items() if number not in self.gone}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A run that waits three times for the same signal, and reads of its inbox that are noted."""
    monkeypatch.setattr("tests.service.world.FlakyRuns", Reading)
    monkeypatch.setattr(limits, "INLINE_MESSAGES", 0)
    steps = (
        Step(n, f"w{n}", Kind.WAIT_FOR_SIGNAL, signal="go", timeout=99_000) for n in range(WAITS)
    )
    return World(*steps)


def reads(world: World) -> list[tuple[int, int]]:
    assert isinstance(world.runs, Reading)
    return world.runs.read


def send(world: World, run_id: str, *names: str) -> None:
    for name in names:
        world.controls.signal("demo", "orders", run_id, name, b'"%s"' % name.encode())


def test_signals_that_came_early_are_taken_in_one_lease_and_read_once(world: World) -> None:
    run_id = world.start()
    send(world, run_id, "other", "go", "other", "go", "go", "go")
    world.drain()
    head = world.head(run_id)
    assert head.status is Status.SUCCEEDED
    assert (head.overflow_last, head.overflow_count) == (6, 3)
    assert world.journal(run_id).taken == Taken(0, ((2, 2), (4, 5)))
    assert reads(world) == [(1, 6)]


def test_a_name_behind_a_thousand_others_is_found_in_few_reads(world: World) -> None:
    run_id = world.start()
    send(world, run_id, *("other",) * (limits.MAX_PENDING_SIGNALS - WAITS), *("go",) * WAITS)
    world.drain()
    assert world.head(run_id).status is Status.SUCCEEDED
    sizes = [last - first + 1 for first, last in reads(world)]
    assert sum(sizes) == limits.MAX_PENDING_SIGNALS
    assert len(sizes) == 7


def test_a_parked_run_reads_only_what_came_since(world: World) -> None:
    run_id = world.start()
    world.turn(run_id)
    send(world, run_id, "go")
    world.turn(run_id)
    send(world, run_id, "other", "go")
    world.turn(run_id)
    assert reads(world) == [(1, 1), (2, 3)]
    assert world.journal(run_id).position == 2


def test_a_worker_without_its_lease_finds_a_gap_and_lets_go(world: World) -> None:
    run_id = world.start()
    send(world, run_id, "go")
    runs = world.runs
    assert isinstance(runs, Reading)
    read = runs.overflow

    def taken_over(run_id: str, first: int, last: int) -> Mapping[int, Slot]:
        head = world.head(run_id)
        runs._heads[run_id] = replace(head, lease_token="another", commit_seq=9)
        runs.gone = {1}
        return read(run_id, first, last)

    runs.overflow = taken_over  # type: ignore[method-assign]
    world.advance.run(run_id, "demo", 60_000)
    head = world.head(run_id)
    assert (head.lease_token, head.commit_seq) == ("another", 9)


def test_what_counts_and_is_not_there_is_unavailable(world: World) -> None:
    run_id = world.start()
    send(world, run_id, "go")
    assert isinstance(world.runs, Reading)
    world.runs.gone = {1}
    with pytest.raises(Unavailable, match="not all of messages 1 to 1 are there"):
        world.advance.run(run_id, "demo", 60_000)
    assert world.head(run_id).live
