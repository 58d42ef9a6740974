"""Every check of the demo holds for a good run, and fails when what it checks is not so."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from examples.order_pipeline.checks import Evidence, checks, left_nothing
from examples.order_pipeline.receiver import Delivery

PAYLOAD = {"template": "welcome"}
GENUINE = Delivery(1.0, "/charge", "run-1:charge", None)


def test_every_check_holds_for_a_good_run() -> None:
    assert _failed(_evidence()) == []
    assert len(checks(_evidence(), PAYLOAD)) == 8


@pytest.mark.parametrize(
    ("changes", "failed"),
    [
        ({"killed": 0}, ["the engine was killed in the middle"]),
        ({"active": False}, ["account 42 is active in PostgreSQL"]),
        ({"updates": 2}, ["no recorded step ran twice"]),
        ({"updates": 0}, ["no recorded step ran twice"]),
        ({"again": "run-2"}, ["one idempotency key, one run"]),
        ({"runs": 2}, ["one idempotency key, one run"]),
        ({"messages": []}, ["the message is in the queue", "no recorded step ran twice"]),
        (
            {"messages": [{"id": 7, "body": {"template": "other"}}]},
            ["the message is in the queue"],
        ),
        (
            {"messages": [{"id": 7, "body": PAYLOAD}, {"id": 8, "body": PAYLOAD}]},
            ["no recorded step ran twice"],
        ),
        (
            {"deliveries": [GENUINE, replace(GENUINE, at=2.0)]},
            ["no recorded step ran twice"],
        ),
        (
            {"deliveries": [replace(GENUINE, fault="no v1 signature matches")]},
            ["the webhook's signature is valid"],
        ),
        (
            {"deliveries": [replace(GENUINE, webhook_id="run-9:charge")]},
            ["the webhook's signature is valid"],
        ),
        (
            {"deliveries": [replace(GENUINE, path="/refund")]},
            ["the webhook's signature is valid"],
        ),
    ],
)
def test_a_check_fails_when_something_else_was_seen(
    changes: dict[str, Any], failed: list[str]
) -> None:
    assert _failed(replace(_evidence(), **changes)) == failed


def test_a_run_that_failed_is_found() -> None:
    evidence = _evidence()
    evidence.after["status"] = "failed"
    assert _failed(evidence) == ["the run and all its steps succeeded"]


def test_a_record_that_changed_after_the_kill_is_found() -> None:
    evidence = _evidence()
    evidence.after["steps"][1]["finished_at"] = "2027-01-15T08:00:09.000Z"
    assert _failed(evidence) == ["what was recorded stayed as it was"]


def test_a_kill_after_the_run_had_ended_is_found() -> None:
    evidence = _evidence()
    late = replace(evidence, before=copy.deepcopy(evidence.after))
    assert _failed(late) == ["the engine was killed in the middle"]


@pytest.mark.parametrize(("code", "left"), [(-9, []), (0, [4711])])
def test_an_end_that_is_not_clean_is_found(code: int, left: list[int]) -> None:
    assert left_nothing(0, []).holds
    assert not left_nothing(code, left).holds


def _failed(evidence: Evidence) -> list[str]:
    return [check.name for check in checks(evidence, PAYLOAD) if not check.holds]


def _evidence() -> Evidence:
    after = _run(["succeeded"] * 4)
    return Evidence(
        killed=-9,
        before=_run(["succeeded", "succeeded", "sleeping", "pending"]),
        after=after,
        again="run-1",
        runs=1,
        active=True,
        updates=1,
        messages=[{"id": 7, "body": PAYLOAD}],
        deliveries=[GENUINE],
    )


def _run(statuses: list[str]) -> Any:
    keys = ("charge", "provision", "cool_off", "notify")
    steps: list[dict[str, Any]] = [
        {
            "key": key,
            "status": status,
            "attempt": int(status == "succeeded"),
            "finished_at": "2027-01-15T08:00:00.000Z" if status == "succeeded" else None,
        }
        for key, status in zip(keys, statuses, strict=True)
    ]
    if statuses[-1] == "succeeded":
        steps[-1]["output"] = {"msg_id": 7}
    status = "succeeded" if statuses[-1] == "succeeded" else "sleeping"
    return {"id": "run-1", "status": status, "last_error": None, "steps": steps}
