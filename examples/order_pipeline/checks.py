"""What must hold at the end, from what was seen from outside. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from examples.order_pipeline.receiver import Delivery

KILLED = -9  # the exit code of a process that SIGKILL ended


@dataclass(frozen=True, slots=True)
class Check:
    """A statement, whether it holds, and what was seen."""

    name: str
    holds: bool
    seen: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen from outside.

    `killed` is the engine's exit code, `before` the run's detail right before; `after` its detail
    at the end. `again` is the run that a second start with the same key gave, `runs` how many the
    workflow has. `active` and `updates` are the account's row and how often it was written,
    `messages` the queue, `deliveries` the receiver's log.
    """

    killed: int
    before: Any
    after: Any
    again: str
    runs: int
    active: bool
    updates: int
    messages: Sequence[Any]
    deliveries: Sequence[Delivery]


def checks(evidence: Evidence, payload: Any) -> list[Check]:
    """Everything that must hold; `payload` is what `notify` sends."""
    return [
        _killed_in_the_middle(evidence),
        _succeeded(evidence),
        _charged(evidence),
        Check(
            "account 42 is active in PostgreSQL",
            evidence.active,
            f"active = {str(evidence.active).lower()}",
        ),
        _announced(evidence, payload),
        _once(evidence),
        _unchanged(evidence),
        Check(
            "one idempotency key, one run",
            evidence.again == evidence.after["id"] and evidence.runs == 1,
            f"{evidence.runs} after two starts",
        ),
    ]


def left_nothing(code: int, left_running: Sequence[int]) -> Check:
    """The engine ended by itself when it was asked to, and PostgreSQL with it."""
    seen = f"exit code {code}"
    if left_running:
        seen += f", PostgreSQL still runs: {', '.join(map(str, left_running))}"
    return Check("the engine stopped, nothing runs on", seen == "exit code 0", seen)


def _killed_in_the_middle(evidence: Evidence) -> Check:
    statuses = [step["status"] for step in evidence.before["steps"]]
    return Check(
        "the engine was killed in the middle",
        evidence.killed == KILLED and statuses == ["succeeded", "succeeded", "sleeping", "pending"],
        f"exit code {evidence.killed}, cool_off {_step(evidence.before, 'cool_off')['status']}",
    )


def _succeeded(evidence: Evidence) -> Check:
    statuses = [evidence.after["status"]] + [step["status"] for step in evidence.after["steps"]]
    error = evidence.after.get("last_error")
    return Check(
        "the run and all its steps succeeded",
        statuses == ["succeeded"] * 5,
        evidence.after["status"] + (f": {error}" if error else ""),
    )


def _charged(evidence: Evidence) -> Check:
    expected = f"{evidence.after['id']}:charge"
    genuine = [
        delivery
        for delivery in evidence.deliveries
        if delivery.path == "/charge" and delivery.webhook_id == expected and not delivery.fault
    ]
    faults = [delivery.fault for delivery in evidence.deliveries if delivery.fault]
    return Check(
        "the webhook's signature is valid",
        bool(genuine) and len(genuine) == len(evidence.deliveries),
        "; ".join(faults) or f"{len(genuine)} of {len(evidence.deliveries)} received",
    )


def _announced(evidence: Evidence, payload: Any) -> Check:
    sent = (_step(evidence.after, "notify").get("output") or {}).get("msg_id")
    found = [message for message in evidence.messages if message["id"] == sent]
    return Check(
        "the message is in the queue",
        len(found) == 1 and found[0]["body"] == payload,
        f"message {sent}: {'found' if found else 'not found'}",
    )


def _once(evidence: Evidence) -> Check:
    """Nothing was in flight at the kill, so each step ran as often as attempts are recorded."""
    ran = {
        "charge": len(evidence.deliveries),
        "provision": evidence.updates,
        "notify": len(evidence.messages),
    }
    recorded = {key: _step(evidence.after, key)["attempt"] for key in ran}
    return Check(
        "no recorded step ran twice",
        ran == recorded,
        ", ".join(f"{key} {_times(ran[key])}" for key in ran),
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _unchanged(evidence: Evidence) -> Check:
    recorded = [step for step in evidence.before["steps"] if step["status"] == "succeeded"]
    same = [step for step in recorded if step == _step(evidence.after, step["key"])]
    return Check(
        "what was recorded stayed as it was",
        bool(recorded) and len(same) == len(recorded),
        f"{len(same)} of {len(recorded)} steps",
    )


def _step(run: Any, key: str) -> Any:
    return next((step for step in run["steps"] if step["key"] == key), {"attempt": 0})
