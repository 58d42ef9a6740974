"""Two hundred children run once each, and are all shown."""

import json

from stepwell_engine.limits import MAX_CHILDREN, MAX_OUTPUT
from tests.scenarios.homes import Home
from tests.scenarios.receiver import Receiver, Reply
from tests.scenarios.step_builders import called, fan, hook, statuses

KEYS = [f"c{n}" for n in range(MAX_CHILDREN)]


def test_two_hundred_children_run_once_each(home: Home, receiver: Receiver) -> None:
    home.publish("wide", *fan(*(hook(receiver, key) for key in KEYS)))
    run_id = home.start("wide")
    run = home.finish("wide", run_id)
    assert run["status"] == "succeeded"
    assert list(run["output"]) == KEYS
    assert sorted(called(receiver)) == sorted(KEYS)
    assert [step["key"] for step in run["steps"]] == ["all", *KEYS[:-1]]
    query = {"cursor": run["next_steps_cursor"]}
    rest = home.request("GET", f"/workflows/wide/runs/{run_id}/steps", query=query).body
    assert [step["key"] for step in rest["items"]] == [KEYS[-1], "joined"]


def test_outputs_that_are_too_large_together_fail_the_join(home: Home, receiver: Receiver) -> None:
    half = json.dumps("x" * (MAX_OUTPUT // 2)).encode()
    receiver.answer = lambda request: Reply(200, half if request.path == "/render" else b"")
    home.ok("PUT", "/functions/render", {"url": f"{receiver.url}/render"})
    pages = [{"key": key, "kind": "function", "target": "render"} for key in ("one", "two")]
    compensation = {"kind": "webhook", "target": f"{receiver.url}/undo"}
    home.publish("page", hook(receiver, "begin", compensate=compensation), *fan(*pages))
    run_id = home.start("page")
    run = home.finish("page", run_id)
    assert (run["status"], run["compensation"]) == ("failed", {"state": "compensated"})
    assert home.step("page", run_id, "joined")["code"] == "output_too_large"
    assert "262,144" in run["last_error"]
    shown = statuses(run)
    assert (shown["one"], shown["two"], shown["joined"]) == ("succeeded", "succeeded", "failed")
    assert len(receiver.at("/undo")) == 1
