"""The list of a workflow's runs: as many starts as one may have, and what a page costs."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from stepwell_engine.adapters.dynamodb.client import DynamoDB
from stepwell_engine.adapters.dynamodb.models import LANE_FORMAT
from stepwell_engine.adapters.dynamodb.run_list import MOMENT
from stepwell_engine.adapters.dynamodb.runs import DynamoRuns
from stepwell_engine.adapters.process.system import RandomIds, SystemClock
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.core.values.units import RunId
from stepwell_engine.ports import Done, Due, Refused
from tests.aws.partitions import LIMIT, FullList, Partitions, SkippedTime
from tests.contract.heads import a_head
from tools.moto_home import RUNS, SHARDS, DynamoHome

AT = 1_800_000_000_000
PAGE = 100
MOST_QUERIES = 4


@dataclass
class Installation:
    """Fifty processes that start runs."""

    clock: SkippedTime = field(default_factory=lambda: SkippedTime(AT))
    dice: random.Random = field(default_factory=lambda: random.Random(7))
    started: list[RunId] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.table = Partitions(self.clock)
        database = DynamoDB(cast(Any, self.table), self.clock)
        self.processes = [DynamoRuns(database, RUNS) for _ in range(50)]
        self.ids = RandomIds(self.clock)

    def start(self, rate: int, seconds: float) -> None:
        began = self.clock.at
        for number in range(int(rate * seconds)):
            self.clock.at = max(self.clock.at, began + number * 1000 // rate)
            head = a_head(self.ids.run_id())
            assert isinstance(self.dice.choice(self.processes).create(head), Done)
            self.started.append(head.run_id)
        self.clock.at = max(self.clock.at, began + int(seconds * 1000))

    def page(self, before: RunId | None) -> tuple[list[RunId], int]:
        """The page that a list of PAGE asks for, and its queries."""
        self.table.queries = 0
        reader = self.processes[0]
        found = [head.run_id for head in reader.list("shop", "order", before, PAGE + 1, None)]
        return found, self.table.queries

    def expected(self, before: RunId | None) -> list[RunId]:
        below = [one for one in self.started if before is None or one < before]
        return sorted(below, reverse=True)[: PAGE + 1]


def test_one_workflow_takes_10000_starts_a_second_and_a_page_four_queries() -> None:
    system = Installation()
    system.start(10_000, 2)
    assert all(
        taken <= LIMIT for (_, second), taken in system.table.busiest.items() if second > AT // 1000
    )
    assert system.table.throttled <= 2 * len(system.processes)
    assert system.clock.paused < 100  # until there was room for the first mark
    for before in (None, *system.dice.sample(system.started, 60)):
        found, queries = system.page(before)
        assert found == system.expected(before)
        assert queries <= MOST_QUERIES


@pytest.mark.parametrize("rate", [1_200, 2_000])
def test_a_page_costs_four_queries_at_any_rate_that_one_partition_does_not_take(rate: int) -> None:
    system = Installation()
    system.start(rate, 7_200 / rate)
    assert system.table.throttled > 0
    for before in (None, *system.dice.sample(system.started[-rate:], 30)):
        found, queries = system.page(before)
        assert found == system.expected(before)
        assert queries <= MOST_QUERIES


def test_an_idle_workflow_is_read_with_one_query() -> None:
    system = Installation()
    for _ in range(300):
        system.clock.at += 9 * 3600 * 1000
        system.start(1, 1)
    for before in (None, system.started[150], system.started[3]):
        assert system.page(before) == (system.expected(before), 1)


def test_after_a_burst_runs_stand_in_one_partition_again() -> None:
    system = Installation()
    system.start(5_000, 1)
    system.start(20, 8)
    quiet = system.started[-120:]
    assert system.page(None) == (system.expected(None), 1)
    assert system.page(quiet[0])[0] == system.expected(quiet[0])


def test_pages_go_on_over_a_burst_and_what_was_before_and_after_it() -> None:
    system = Installation()
    system.start(20, 3)
    system.start(5_000, 0.4)
    system.start(20, 3)
    system.start(3_000, 1)
    seen: list[RunId] = []
    most = 0
    while True:
        found, queries = system.page(seen[-1] if seen else None)
        most = max(most, queries)
        seen += found[:PAGE]
        if len(found) <= PAGE:
            break
    assert seen == sorted(system.started, reverse=True)
    # The end of a burst, where the rest of its second is empty, costs each lane a look.
    assert most <= MOMENT // 64 + MOST_QUERIES


@pytest.fixture
def home() -> Iterator[DynamoHome]:
    opened = DynamoHome()
    yield opened
    opened.close()


def _busy_runs() -> DynamoRuns:
    return DynamoRuns(DynamoDB(cast(Any, FullList()), SystemClock()), RUNS, SHARDS)


@pytest.mark.parametrize("key", [None, "key-1"])
def test_a_run_in_a_lane_is_a_run_like_any_other(home: DynamoHome, key: str | None) -> None:
    run_id = RandomIds(SystemClock()).run_id()
    runs = _busy_runs()
    created = runs.create(a_head(run_id, idempotency_key=key, wake_at=AT))
    assert isinstance(created, Done)
    assert created.head == a_head(run_id, idempotency_key=key, wake_at=AT, format=LANE_FORMAT)
    assert home.runs.get(run_id) == created.head
    assert home.runs.list("shop", "order", None, 10, None) == [created.head]
    assert home.runs.list("shop", "order", run_id, 10, None) == []
    assert home.runs.due(AT, None, 10)[0] == [Due(about_run(run_id, "shop"), AT)]
    assert runs.create(created.head) == Refused(created.head)
    if key is not None:
        assert home.runs.by_key("shop", "order", key) == created.head


def test_an_older_version_leaves_lanes_and_their_marks_out(home: DynamoHome) -> None:
    ids = RandomIds(SystemClock())
    narrow = a_head(ids.run_id())
    home.runs.create(narrow)
    _busy_runs().create(a_head(ids.run_id()))
    older = [item for item in home.items(RUNS) if int(item["f"]["N"]) < LANE_FORMAT]
    assert [item["g"]["S"] for item in older] == ["shop#order"]
    assert [item["k"]["S"] for item in older] == ["h"]
