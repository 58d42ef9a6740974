"""How hot each partition key gets at a rate: units of metered runs, times runs per second.

The runs are those of the bill: function steps, started over the API, on moto, advanced by a worker
that has read the workflow before, as workers have at such rates. A key that stands for many, such
as a run's own or one shard of sixteen, is put with its like: load goes evenly to them, or each has
but its own.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from botocore.exceptions import ClientError  # type: ignore[import-untyped]

from stepwell_engine.adapters.dynamodb.client import connect
from stepwell_engine.adapters.dynamodb.models import HEAD, DueRuns, RunsOfWorkflow
from stepwell_engine.adapters.dynamodb.run_list import LANES
from stepwell_engine.service.worker.advance import Advance
from tools.bill.bill import PROJECT, WORKFLOW, MeteredAws, function_steps
from tools.bill.meter import Meter, Partition
from tools.moto_home import CONTROL, REGION, RUNS, DynamoHome, client

# What DynamoDB takes per second for one partition key.
WRITES: Final = 1_000
READS: Final = 3_000

METERED: Final = 8  # runs
_NARROW: Final = f"{PROJECT}#{WORKFLOW}"
_LANE: Final = re.compile(rf"{_NARROW}#\d+")
LANE, SHARD, RUN = "each lane of a workflow", "each shard", "each run"


@dataclass(frozen=True, slots=True)
class Key:
    """One partition key, or each of `alike`, and what it takes per second.

    `runs_per_second`: up to which rate of such runs it holds.
    """

    where: str
    what: str
    alike: int | None
    writes: float
    reads: float
    runs_per_second: float

    @property
    def share(self) -> float:
        """Of what DynamoDB takes: above 1 it burns."""
        return max(self.writes / WRITES, self.reads / READS)


@dataclass
class FullPartitions:
    """DynamoDB throttles the first partition of each workflow's list: it has had its share."""

    refused: int = 0

    def check(self, params: Any, **_: Any) -> None:
        """As a handler of botocore's events."""
        writes = [
            params,
            *(write["Put"] for write in params.get("TransactItems", ()) if "Put" in write),
        ]
        for item in (one["Item"] for one in writes if "Item" in one):
            if item.get("k") == {"S": HEAD} and item.get("g") == {"S": _NARROW}:
                self.refused += 1
                answer: Any = {"Error": {"Code": "ThrottlingException", "Message": "metered"}}
                raise ClientError(answer, "PutItem")


class Warm(MeteredAws):
    """Has one worker, which remembers what it read."""

    def _worker(self) -> Advance:
        return self._one

    @cached_property
    def _one(self) -> Advance:
        return super()._worker()


@dataclass
class Units:
    """What one kind of key took, for one run."""

    writes: float = 0
    reads: float = 0


def heat(runs: float, steps: float, due_shards: int) -> list[Key]:
    """The keys at `runs` and `steps` per second of one workflow, the hottest first.

    ValueError for less than a step a run.
    """
    if runs <= 0 or steps < runs:
        raise ValueError("there are fewer steps than runs: a run has one at least")
    body = function_steps(round(steps / runs))
    full = runs > WRITES
    written, read = measure(body, full)
    kinds: defaultdict[tuple[str, str], Units] = defaultdict(Units)
    for partition, units in written.items():
        if full and partition == (RunsOfWorkflow.Meta.index_name, _NARROW):
            continue  # marks: one for each process and second, however many runs there are
        kinds[_kind(partition)].writes += units / METERED
    for partition, units in read.items():
        kinds[_kind(partition)].reads += units / METERED
    keys = [_key(kind, units, runs, due_shards) for kind, units in kinds.items()]
    return sorted(keys, key=lambda key: key.share, reverse=True)


def measure(
    body: Mapping[str, Any], full: bool
) -> tuple[Mapping[Partition, float], Mapping[Partition, float]]:
    """Units written and read by METERED runs, by partition; `full`: see FullPartitions."""
    home = DynamoHome()
    partitions = FullPartitions()
    events = client().meta.events
    try:
        meter = Meter(connect(REGION))
        system = Warm(body, meter)
        system.run()  # now the worker knows the workflow
        if full:
            events.register("before-parameter-build.dynamodb", partitions.check)
        meter.watch(client())
        try:
            for _ in range(METERED):
                system.run()
        finally:
            meter.unwatch(client())
            events.unregister("before-parameter-build.dynamodb", partitions.check)
        if system.succeeded() != METERED + 1 or full is not (partitions.refused > 0):
            raise RuntimeError("the runs to be measured did not go as they should")
        return meter.bill().written, meter.bill().read
    finally:
        home.close()


def _kind(partition: Partition) -> tuple[str, str]:
    """The index or table, and what its key stands for."""
    where, value = partition
    if where == RunsOfWorkflow.Meta.index_name and _LANE.fullmatch(value):
        return where, LANE
    if where == DueRuns.Meta.index_name:
        return where, SHARD
    if where == RUNS:
        return "runs", RUN
    return ("control" if where == CONTROL else where), value


def _key(kind: tuple[str, str], units: Units, runs: float, due_shards: int) -> Key:
    where, what = kind
    # A run's own key takes what its run does, in a second if it is a fast one.
    alike = {SHARD: due_shards, LANE: LANES, RUN: None}.get(what, 1)
    writes, reads = units.writes, units.reads
    if alike is not None:
        writes, reads = writes * runs / alike, reads * runs / alike
    share = max(writes / WRITES, reads / READS)
    holds = float("inf") if alike is None or not share else runs / share
    if what == _NARROW:
        holds *= LANES  # where it is full, there are lanes
    return Key(where, what, alike, writes, reads, holds)
