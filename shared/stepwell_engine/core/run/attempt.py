"""Effects as values: what a performer is asked to do, and what came of it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of one step.

    `effect_id` (`run:step`, or `run:compensate:step`) is the same on every attempt: the
    idempotency key for the world outside. `timeout` in ms bounds the whole attempt.
    `kind` names the runner that tries it. `secret` is sealed text. `undo`: the step's compensation.
    """

    project: str
    workflow: str
    run_id: str
    ordinal: int
    step: str
    kind: str
    number: int
    idempotency_key: str
    target: str
    payload: Any
    secret: str | None
    timeout: int
    compensation: bool = False


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
    retry_after: int | None = None


@dataclass(frozen=True, slots=True)
class Deferred:
    """The attempt did not happen, since this host lacked something: it costs none of the budget.

    Only if the world outside cannot have noticed anything.
    """

    message: str


Outcome = Succeeded | Failed | Deferred
