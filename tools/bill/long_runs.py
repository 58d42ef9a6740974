"""What a step costs late in a long run: the real engine in memory, its writes priced by size.

Longer than a declared workflow may be: records are kept for runs of thousands of steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from stepwell_engine.adapters.dynamodb.client import BATCH
from stepwell_engine.adapters.dynamodb.heads import to_item
from stepwell_engine.adapters.dynamodb.models import BlobItem, HeadItem, definition
from stepwell_engine.adapters.memory.hints import MemoryDispatcher
from stepwell_engine.adapters.memory.runs import MemoryRuns
from stepwell_engine.adapters.process.system import RandomIds
from stepwell_engine.core.declared.definition import Definition, Kind, Step
from stepwell_engine.core.declared.program import DeclaredProgram
from stepwell_engine.core.run.attempt import Attempt, Outcome, Succeeded
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.run.status import Status
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.limits import DUE_SHARDS, KIB
from stepwell_engine.ports import Commit, Done, StepRunner, Written
from stepwell_engine.service.runs.run_reader import RunReader, journal_of
from stepwell_engine.service.runs.starts import Starts
from stepwell_engine.service.worker.advance import Advance
from tools.bill.bill import (
    CHARACTERS,
    OUTPUT,
    PROJECT,
    SEED,
    STEP_TIME_MS,
    WORKFLOW,
    OneByOne,
    SkippingClock,
)
from tools.bill.meter_sizes import index_units, item_size, write_units
from tools.bill.meter_stored import table_of

AT: Final = (100, 1_000, 10_000)  # steps
LAST: Final = 100  # steps before each of these, over which the units are a mean
PER_LEASE: Final = (1, 2, 20, 200)  # steps that one worker takes before it lets go of the run
LEASE_UNITS: Final = 4.0  # that a lease may cost
STEP_UNITS: Final = 1.3  # that a step may cost beside
CALLS: Final = 30  # that may read all records of the longest
_INDEXES: Final = table_of(definition(HeadItem, "runs")).indexes


@dataclass(frozen=True, slots=True)
class LongRun:
    """What was counted: write units of a step at some of them, leases included.

    Also the largest head around these; how many records were read at the end, from how many blobs
    and with how many calls.
    """

    units: Mapping[int, float]
    largest_head: int
    records: int
    blobs_read: int
    calls: int


class CountedRuns(MemoryRuns):
    """Counts what its writes take on DynamoDB, and how many calls its reads of blobs are there."""

    def __init__(self) -> None:
        super().__init__()
        self.counting = True  # writes, which takes longer than making them
        self.units = 0.0
        self.largest_head = 0
        self.blobs_read = 0
        self.calls = 0

    def claim(
        self,
        run_id: str,
        lease_token: str,
        now: int,
        lease_expires_at: int,
        lane: Lane = Lane.HOST,
    ) -> Written:
        """Count the head."""
        before = self.get(run_id)
        claimed = super().claim(run_id, lease_token, now, lease_expires_at, lane)
        return self._billed(before, claimed)

    def commit(self, commit: Commit) -> Written:
        """Count the blobs and the head."""
        before = self.get(commit.run_id)
        for blob in commit.blobs if self.counting else ():
            item = BlobItem(run_id=commit.run_id, name=blob.name, data=blob.data).serialize()
            self.units += write_units(item_size(item))
        return self._billed(before, super().commit(commit))

    def blobs(self, run_id: str, names: Sequence[str]) -> dict[str, bytes]:
        """Count the batches."""
        self.blobs_read += len(names)
        self.calls += -(-len(names) // BATCH)
        return dict(super().blobs(run_id, names))

    def _billed(self, before: Head | None, written: Written) -> Written:
        if before is None or not isinstance(written, Done):
            raise RuntimeError("a write of the run to be measured was refused")
        if not self.counting:
            return written
        old, new = (to_item(head, DUE_SHARDS) for head in (before, written.head))
        self.largest_head = max(self.largest_head, item_size(new))
        self.units += write_units(max(item_size(old), item_size(new)))
        for index in _INDEXES:
            self.units += index_units(index.entry(old), index.entry(new), index.own_keys)
        return written


@dataclass(frozen=True, slots=True)
class OneProgram:
    """The workflow of the run to be measured, as the service asks for it."""

    program: DeclaredProgram

    def enabled(self, _project: str, _workflow: str) -> int:
        """Its version."""
        return self.program.definition.version

    def load(self, _project: str, _workflow: str, _version: int) -> DeclaredProgram:
        """It."""
        return self.program

    unreadable = load


@dataclass
class Steps:
    """The steps' own work, as in `bill`; writes are counted around those of `AT`.

    `paid` is what was paid when each of them began.
    """

    clock: SkippingClock
    runs: CountedRuns
    dice: Random = field(default_factory=lambda: Random(SEED))
    paid: list[float] = field(default_factory=list)

    def run(self, _attempt: Attempt) -> Outcome:
        """Succeed."""
        begun = len(self.paid)
        self.runs.counting = any(step - LAST <= begun < step for step in AT)
        self.paid.append(self.runs.units)
        self.clock.sleep(STEP_TIME_MS)
        return Succeeded(jsonvalue.encode("".join(self.dice.choices(CHARACTERS, k=OUTPUT - 2))))


def long_run(steps: int, per_lease: int) -> LongRun:
    """A run of so many steps, to its end; a worker lets go of it after `per_lease` of them."""
    clock, runs = SkippingClock(), CountedRuns()
    hints, ids, work = MemoryDispatcher(clock), RandomIds(clock), Steps(clock, runs)
    functions = (Step(n, f"step-{n}", Kind.FUNCTION, "work", timeout=1_000) for n in range(steps))
    program = DeclaredProgram(Definition(PROJECT, WORKFLOW, 1, tuple(functions)))
    programs = OneProgram(program)
    runners: dict[str, StepRunner] = {Kind.FUNCTION: work}
    advance = Advance(runs, programs, runners, OneByOne(), hints, clock, ids)
    run_id = Starts(runs, programs, hints, clock, ids).start(PROJECT, WORKFLOW, b"{}").head.run_id
    budget = (per_lease - 1) * STEP_TIME_MS + 1
    while hints.pop_due(clock.now()) is not None:
        advance.run(run_id, PROJECT, budget)
    head = runs.get(run_id)
    if head is None or head.status is not Status.SUCCEEDED or len(work.paid) != steps:
        raise RuntimeError("the run to be measured did not succeed")
    journal = journal_of(head, program.keys)
    records = RunReader(runs, clock).records(head, journal, program.keys)
    paid = [*work.paid, runs.units]
    return LongRun(
        units={step: (paid[step] - paid[step - LAST]) / LAST for step in AT if step <= steps},
        largest_head=runs.largest_head,
        records=len(records),
        blobs_read=runs.blobs_read,
        calls=runs.calls,
    )


def target(per_lease: int) -> float:
    """The most write units that a step may cost, its share of a lease included."""
    return STEP_UNITS + LEASE_UNITS / per_lease


def long_runs() -> dict[str, Any]:
    """Figures for each number of steps that a worker takes before it lets go of a run."""
    runs = {per_lease: long_run(AT[-1], per_lease) for per_lease in PER_LEASE}
    return {
        "units": {
            str(per_lease): {str(step): units for step, units in run.units.items()}
            for per_lease, run in runs.items()
        },
        "largest_head": max(run.largest_head for run in runs.values()),
        "blobs_read": max(run.blobs_read for run in runs.values()),
        "calls": max(run.calls for run in runs.values()),
        "targets": {
            "units": {str(per_lease): target(per_lease) for per_lease in PER_LEASE},
            "largest_head": KIB,
            "calls": CALLS,
        },
    }
