"""Parents and their child runs on the deployed template; no tick comes to help them."""

from typing import Any

import pytest

from tests.e2e.installation import RESERVE, Installation, JsonObject
from tests.scenarios.receiver import Receiver
from tests.scenarios.step_builders import answer_by_path, await_signal, call, doomed, statuses

pytestmark = pytest.mark.e2e


def family(installed: Installation, name: str, *child: JsonObject, **call_fields: Any) -> str:
    """Start the parent `name`, whose only step is the child `name`-child; the parent's id."""
    installed.publish(f"{name}-child", *child)
    installed.publish(name, call(f"{name}-child", **call_fields))
    return installed.start(name)


def parked(installed: Installation, name: str, run_id: str) -> tuple[JsonObject, JsonObject]:
    """The parent and its child, when both wait."""
    parent = installed.parked(name, run_id)
    return parent, installed.parked(f"{name}-child", parent["steps"][0]["output"])


def test_a_parent_is_woken_by_the_end_of_its_child(installed: Installation) -> None:
    installed.ok("PUT", "/functions/reserve", {"lambda": RESERVE})
    reserve = {"key": "reserve", "kind": "function", "target": "reserve", "payload": {"sku": "mug"}}
    run_id = family(installed, "fulfil", await_signal(), reserve, payload={"warehouse": "eu-1"})
    parent, child = parked(installed, "fulfil", run_id)
    waits = f'waiting for run {child["id"]} of workflow "fulfil-child", until '
    assert parent["reason"].startswith(waits)
    assert child["input"] == {"warehouse": "eu-1"}
    assert child["parent"] == {"run_id": run_id, "workflow": "fulfil"}
    assert (parent["depth"], child["depth"]) == (0, 1)

    assert installed.signal("fulfil-child", child["id"], "approved").status_code == 201
    parent = installed.finish("fulfil", run_id)
    output = {"reserved": "mug", "key": f"{child['id']}:reserve"}
    (step,) = parent["steps"]
    assert (parent["status"], step["attempt"]) == ("succeeded", 1)
    assert (step["output"], step["child_output"]) == (child["id"], output)
    assert parent["output"] == output
    assert [run["id"] for run in installed.runs_of("fulfil-child")] == [child["id"]]


def test_a_child_that_failed_is_followed_by_a_new_one(
    installed: Installation, receiver: Receiver
) -> None:
    answer_by_path(receiver, {"doomed": [500, 200]})
    run_id = family(installed, "retry", doomed(receiver), max_attempts=2)
    parent = installed.finish("retry", run_id)
    first, second = installed.runs_of("retry-child")
    assert (first["status"], second["status"]) == ("failed", "succeeded")
    (step,) = parent["steps"]
    assert (parent["status"], step["attempt"], step["output"]) == ("succeeded", 2, second["id"])
    assert parent["output"] == {"delivered": True, "status": 200}
    ids = [request.headers["webhook-id"] for request in receiver.calls]
    assert ids == [f"{first['id']}:doomed", f"{second['id']}:doomed"]


def test_a_child_that_was_cancelled_fails_its_parent_at_once(installed: Installation) -> None:
    run_id = family(installed, "stop", await_signal(), max_attempts=5)
    _, child = parked(installed, "stop", run_id)
    assert installed.cancel("stop-child", child["id"]).status_code == 200
    parent = installed.finish("stop", run_id)
    assert (parent["status"], parent["compensation"]) == ("failed", {"state": "none"})
    assert parent["last_error"] == f"child run {child['id']} was cancelled"
    (step,) = parent["steps"]
    assert (step["status"], step["attempt"], step["code"]) == ("failed", 1, "child_cancelled")
    assert [run["status"] for run in installed.runs_of("stop-child")] == ["cancelled"]


def test_a_cancel_goes_down_to_the_child_if_it_cascades(installed: Installation) -> None:
    run_id = family(installed, "cascade", await_signal())
    _, child = parked(installed, "cascade", run_id)
    answer = installed.cancel("cascade", run_id, "?cascade=true")
    assert (answer.status_code, answer.json()) == (200, {"id": run_id, "status": "cancelled"})
    child = installed.run("cascade-child", child["id"])
    assert (child["status"], statuses(child)) == ("cancelled", {"wait": "cancelled"})
    installed.drain()
    parent = installed.run("cascade", run_id)
    assert (parent["status"], statuses(parent)) == ("cancelled", {"call": "cancelled"})
