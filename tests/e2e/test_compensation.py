"""A run that fails on the deployed template is compensated backwards, a fan-out by its children."""

from dataclasses import dataclass

import pytest

from tests.e2e.installation import RESERVE, Installation, JsonObject
from tests.scenarios.receiver import Receiver
from tests.scenarios.step_builders import answer_by_path, called, compensated, doomed, fan, hook

pytestmark = pytest.mark.e2e


@dataclass(frozen=True)
class EndedRun:
    """A run that has ended, and its steps by key."""

    run: JsonObject
    steps: dict[str, JsonObject]


@pytest.fixture(scope="module")
def ended(installed: Installation, receiver: Receiver) -> EndedRun:
    """The run charges, does five things at once, labels, and then fails."""
    answer_by_path(receiver, {"doomed": [500], "undo-charge": [500, 200]})
    installed.ok("PUT", "/queues/undone", {})
    installed.ok("PUT", "/functions/reserve", {"lambda": RESERVE})
    enqueue = {"kind": "enqueue", "target": "undone", "payload": {"undo": "mail"}}
    reserve = {"kind": "function", "target": "reserve", "payload": {"sku": "none"}}
    installed.publish(
        "undo",
        compensated(receiver, "charge"),
        *fan(
            compensated(receiver, "crm"),
            compensated(receiver, "search"),
            hook(receiver, "log"),
            hook(receiver, "mail", compensate=enqueue),
            hook(receiver, "stock", compensate=reserve),
        ),
        compensated(receiver, "label"),
        doomed(receiver),
        compensated(receiver, "after"),
    )
    run = installed.finish("undo", installed.start("undo"))
    return EndedRun(run, {step["key"]: step for step in run["steps"]})


def test_the_run_has_failed_and_is_compensated(ended: EndedRun) -> None:
    assert (ended.run["status"], ended.run["compensation"]) == ("failed", {"state": "compensated"})
    assert "answered 500" in ended.run["last_error"]


def test_the_receiver_is_called_forwards_and_then_backwards(
    ended: EndedRun, receiver: Receiver
) -> None:
    calls = called(receiver)
    assert calls[0] == "charge"
    assert sorted(calls[1:6]) == ["crm", "log", "mail", "search", "stock"]
    assert calls[6:9] == ["label", "doomed", "undo-label"]
    assert sorted(calls[9:11]) == ["undo-crm", "undo-search"]
    assert calls[11:] == ["undo-charge"] * 2
    ids = [request.headers["webhook-id"] for request in receiver.at("/undo-charge")]
    assert ids == [f"{ended.run['id']}:compensate:charge"] * 2


def test_every_compensation_has_a_row_after_its_step(ended: EndedRun) -> None:
    assert [(step["key"], step.get("parent_step_id")) for step in ended.run["steps"]] == [
        ("charge", None),
        ("compensate:charge", None),
        ("all", None),
        ("crm", "all"),
        ("compensate:crm", "all"),
        ("search", "all"),
        ("compensate:search", "all"),
        ("log", "all"),
        ("mail", "all"),
        ("compensate:mail", "all"),
        ("stock", "all"),
        ("compensate:stock", "all"),
        ("joined", None),
        ("label", None),
        ("compensate:label", None),
        ("doomed", None),
    ]
    for key, step in ended.steps.items():
        compensates = key.startswith("compensate:")
        assert step.get("compensating", False) is compensates
        assert step["status"] == ("failed" if key == "doomed" else "succeeded")
    assert ended.steps["compensate:charge"]["attempt"] == 2


def test_a_queue_and_a_function_compensate_as_well(
    ended: EndedRun, installed: Installation
) -> None:
    (message,) = installed.ok("POST", "/queues/undone/messages/receive", {})["items"]
    assert message["body"] == {"undo": "mail"}
    assert ended.steps["compensate:mail"]["output"] == {"msg_id": message["id"]}
    key = f"{ended.run['id']}:compensate:stock"
    assert ended.steps["compensate:stock"]["output"] == {"reserved": "none", "key": key}
