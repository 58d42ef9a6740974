"""How many hints a sleep takes: one run of many sleeps, a tick a minute, time skipped.

As on AWS: the tick looks 150 s ahead, and hints come at their time, each to a worker of its own.
"""

from typing import Any, Final

from stepwell_engine.adapters.memory.hints import MemoryDispatcher
from stepwell_engine.adapters.memory.runs import MemoryRuns
from stepwell_engine.adapters.process.system import RandomIds
from stepwell_engine.core.declared.definition import Definition, Kind, Step
from stepwell_engine.core.declared.program import DeclaredProgram
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.run.status import Status
from stepwell_engine.core.values.subject import Subject
from stepwell_engine.limits import MINUTE, SECOND
from stepwell_engine.ports import Refused, Written
from stepwell_engine.service.runs.starts import Starts
from stepwell_engine.service.worker.advance import Advance
from stepwell_engine.service.worker.sweep import Sweep
from tools.bill.bill import PROJECT, WORKFLOW, OneByOne, SkippingClock
from tools.bill.long_runs import OneProgram

SLEEPS: Final = 90
SLEEP: Final = 10 * MINUTE
LOOK_AHEAD: Final = 150 * SECOND
TICK_LATER: Final = 25 * SECOND  # after the start, so that no tick comes just when a sleep ends
# What is to be reached, of all sleeps together: claims that met a run that was not ready.
TARGET: Final = 223


class CountingRuns(MemoryRuns):
    """Counts the claims that were refused."""

    refused = 0

    def claim(
        self,
        run_id: str,
        lease_token: str,
        now: int,
        lease_expires_at: int,
        lane: Lane = Lane.HOST,
    ) -> Written:
        """Count a refusal."""
        written = super().claim(run_id, lease_token, now, lease_expires_at, lane)
        self.refused += isinstance(written, Refused)
        return written


class CountingDispatcher(MemoryDispatcher):
    """Counts the hints."""

    sent = 0

    def hint(self, subject: Subject, delay: int = 0, *, alone: bool = False) -> None:
        """Count one."""
        self.sent += 1
        super().hint(subject, delay, alone=alone)


def sleeps() -> dict[str, Any]:
    """Hints sent, claims refused, and by how much a sleep was too long, in ms, on average."""
    clock, runs = SkippingClock(), CountingRuns()
    hints, ids = CountingDispatcher(clock), RandomIds(clock)
    steps = (Step(n, f"s{n}", Kind.SLEEP, sleep_for=SLEEP) for n in range(SLEEPS))
    program = OneProgram(DeclaredProgram(Definition(PROJECT, WORKFLOW, 1, tuple(steps))))
    advance = Advance(runs, program, {}, OneByOne(), hints, clock, ids)
    sweep = Sweep(runs, hints, clock, LOOK_AHEAD)
    since: int | None = None
    began, next_tick = clock.now(), clock.now() + TICK_LATER
    head = Starts(runs, program, hints, clock, ids).start(PROJECT, WORKFLOW, b"{}").head
    while head.live:
        hinted = hints.next_at()
        if hinted is None or next_tick <= hinted:
            clock.at, next_tick = next_tick, next_tick + MINUTE
            since = sweep.tick(since=since).began
        elif hint := hints.pop_due(hinted):
            clock.at = hint.at
            advance.run(head.run_id, PROJECT, MINUTE)
        head = _of(runs, head.run_id)
    if head.status is not Status.SUCCEEDED or head.ended_at is None:
        raise RuntimeError("the run to be measured did not succeed")
    return {
        "sleeps": SLEEPS,
        "hints": hints.sent,
        "refused": runs.refused,
        "late_ms": (head.ended_at - began) / SLEEPS - SLEEP,
        "target": TARGET,
    }


def _of(runs: MemoryRuns, run_id: str) -> Head:
    found = runs.get(run_id)
    if found is None:
        raise RuntimeError("the run to be measured is gone")
    return found
