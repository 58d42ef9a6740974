"""What a worker works with, and how it runs an attempt."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from stepwell_engine.core.run.attempt import (
    Attempt,
    Deferred,
    Failed,
    Outcome,
    UncommittedOutcome,
)
from stepwell_engine.core.values.units import EpochMs
from stepwell_engine.ports import Clock, Dispatcher, Ids, Runs, StepRunner
from stepwell_engine.service.runs.children import Children
from stepwell_engine.service.worker.process import WorkerProcess

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tools:
    """What a worker works with."""

    runs: Runs
    runners: Mapping[str, StepRunner]
    dispatcher: Dispatcher
    clock: Clock
    ids: Ids
    children: Children
    process: WorkerProcess


def run_attempt(
    tools: Tools, attempt: Attempt, started: EpochMs, alone: bool
) -> UncommittedOutcome:
    """Run an attempt, in a child process of its own if it has to be `alone` and there is one.

    Deferred if the process is abandoned: its run may be let go already.
    """
    outcome: Outcome = Deferred("its host stops")
    if not tools.process.abandoned:
        outcome = _outcome(tools, attempt, alone)
    return UncommittedOutcome(attempt, outcome, started, tools.clock.now())


def _outcome(tools: Tools, attempt: Attempt, alone: bool) -> Outcome:
    isolation = tools.process.isolation if alone else None
    try:
        runner = tools.runners[attempt.kind] if isolation is None else isolation
        outcome = runner.run(attempt)
    except Exception as error:  # a runner's own defect must not stop the run's life
        log.exception("run %s: step %s", attempt.run_id, attempt.step)
        outcome = Failed(f"the engine failed to run this step: {error!r}")
    # What came of it may be that this process ended it.
    return Deferred("its host stopped") if tools.process.abandoned else outcome
