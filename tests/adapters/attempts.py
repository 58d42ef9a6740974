"""Attempts, and the parts of outcomes."""

from dataclasses import replace
from typing import Any

from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import Attempt, Failed, Outcome, Succeeded
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.ports import Resource

NOW = 1_700_000_000_123

ATTEMPT = Attempt(
    project="shop",
    workflow="order",
    run_id="0190-run",
    step="charge",
    kind=Kind.WEBHOOK,
    number=2,
    idempotency_key="0190-run:charge",
    target="",
    payload={"amount": 4900},
    secret=None,
    timeout=20_000,
)


class StillClock:
    """A clock that stands at NOW."""

    def now(self) -> int:
        return NOW

    def sleep(self, ms: int) -> None:
        raise AssertionError("nobody sleeps here")


def attempt(kind: Kind, target: str, **fields: Any) -> Attempt:
    """An attempt at `target`, the rest as in ATTEMPT."""
    return replace(ATTEMPT, kind=kind, target=target, **fields)


def resource(kind: str, name: str, config: Any, sealed: str | None = None) -> Resource:
    """A resource of the project `shop`."""
    return Resource("shop", kind, name, jsonvalue.encode(config), sealed, NOW)


def output(outcome: Outcome) -> Any:
    """The output of a success as a value."""
    assert isinstance(outcome, Succeeded), outcome
    return None if outcome.output is None else jsonvalue.decode(outcome.output)


def failure(outcome: Outcome) -> Failed:
    """The outcome, which must be a failure."""
    assert isinstance(outcome, Failed), outcome
    return outcome
