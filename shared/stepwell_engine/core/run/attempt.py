"""Side effects as values: what a step runner is asked to try, and what came of it."""

from dataclasses import dataclass
from typing import Any

from stepwell_engine.core.run.keys import StepKey
from stepwell_engine.core.values.units import EpochMs, Ms, ProjectRef, RunId, WorkflowName
from stepwell_engine.limits import CLOCK_MARGIN


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of one step, or of a compensation.

    `kind` names the runner that tries it. `idempotency_key` (`run:step`, or
    `run:compensate:step`) is the same on every attempt: it tells the world outside that an attempt
    is a repetition. `timeout` in ms bounds the whole attempt, what it looks up included;
    `deadline`, by the worker's clock, is when it must be over: None until a worker begins it.
    `secret` is sealed text.
    """

    project: ProjectRef
    workflow: WorkflowName
    run_id: RunId
    step: StepKey
    kind: str
    number: int
    idempotency_key: str
    target: str
    payload: Any
    secret: str | None
    timeout: Ms
    deadline: EpochMs | None = None


def may_begin(
    now: EpochMs,
    needed: Ms,
    expires_at: EpochMs | None,
) -> bool:
    """Whether an attempt that may need so long would end before a lease, or a gate, if any.

    With the margin by which the clock of who takes it over may differ.
    """
    return expires_at is None or now + needed + CLOCK_MARGIN < expires_at


def deadline_of(
    started: EpochMs,
    timeout: Ms,
    lease_expires_at: EpochMs,
    gate_expires_at: EpochMs | None = None,
) -> EpochMs:
    """When an attempt must be over: the earliest of its own time, its lease and its gate.

    From lease and gate goes the margin by which the clock of who takes them over may differ.
    """
    expiries = (lease_expires_at, gate_expires_at)
    ends = (one - CLOCK_MARGIN for one in expiries if one is not None)
    return min(started + timeout, *ends)


@dataclass(frozen=True, slots=True)
class Succeeded:
    """`output` is compact JSON, or None where the step has no output."""

    output: bytes | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """A failed attempt. `code` is one of the stable codes of steps, where one fits.

    `retryable` False ends the step at once; `retry_after` (ms) asks for a longer pause.
    """

    message: str
    code: str | None = None
    retryable: bool = True
    retry_after: Ms | None = None


@dataclass(frozen=True, slots=True)
class Deferred:
    """The attempt did not begin, since this host lacked something: it costs none of the budget.

    Only if the world outside cannot have noticed anything.
    """

    message: str


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """The attempt ended the process in which it ran alone; nobody knows what it did."""

    message: str


Outcome = Succeeded | Failed | Deferred | WorkerLost


@dataclass(frozen=True, slots=True)
class UncommittedOutcome:
    """An outcome in hand that no commit carries yet. Times in ms since the epoch."""

    attempt: Attempt
    outcome: Outcome
    started: EpochMs
    finished: EpochMs
