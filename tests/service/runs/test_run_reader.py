"""What is recorded of a long run is read with one call for each level of its pages."""

from collections.abc import Mapping, Sequence

import pytest

from stepwell_engine import limits
from stepwell_engine.adapters.memory.runs import MemoryRuns
from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.run.attempt import Succeeded
from stepwell_engine.service.runs.run_reader import RunReader, journal_of
from tests.service.world import World

STEPS = 40


class NotedRuns:
    """Notes which blobs are read together; one of them may be gone."""

    def __init__(self, runs: MemoryRuns, gone: str = "") -> None:
        self._runs = runs
        self._gone = gone
        self.read: list[Sequence[str]] = []

    def blobs(self, run_id: str, names: Sequence[str]) -> Mapping[str, bytes]:
        self.read.append(names)
        return self._runs.blobs(run_id, [name for name in names if name != self._gone])


@pytest.fixture
def finished(monkeypatch: pytest.MonkeyPatch) -> tuple[World, str]:
    """A run with a page for every step, and index pages of several levels."""
    monkeypatch.setattr(limits, "PAGE_ABOVE", 0)
    monkeypatch.setattr(limits, "PAGES_OF_INDEX", 3)
    world = World(*(Step(at, f"s{at}", Kind.FUNCTION, "f", timeout=1_000) for at in range(STEPS)))
    run_id = world.start()
    world.outcomes = [Succeeded(b"%d" % at) for at in range(STEPS)]
    world.turn(run_id)
    return world, run_id


def test_all_records_are_read_with_a_call_for_each_level(finished: tuple[World, str]) -> None:
    world, run_id = finished
    head, keys, runs = world.head(run_id), world.definition.keys, NotedRuns(world.runs)
    journal = journal_of(head, keys)
    assert [page.level for page in journal.pages] == [3, 2, 1, 0]
    reader = RunReader(runs, world.clock)  # type: ignore[arg-type]  # it only reads blobs
    records = reader.records(head, journal, keys)
    assert {key: record.output for key, record in records.items()} == {
        f"s{at}": b"%d" % at for at in range(STEPS)
    }
    assert list(records) == [f"s{at}" for at in range(STEPS)]
    assert [len(names) for names in runs.read] == [4, 9, 18, 27]
    reader.records(head, journal, keys)
    assert len(runs.read) == 4


def test_a_page_that_is_gone_is_named(finished: tuple[World, str]) -> None:
    world, run_id = finished
    head, keys = world.head(run_id), world.definition.keys
    journal = journal_of(head, keys)
    gone = journal.pages[0].blob
    reader = RunReader(NotedRuns(world.runs, gone), world.clock)  # type: ignore[arg-type]
    with pytest.raises(LookupError, match=gone):
        reader.records(head, journal, keys)
