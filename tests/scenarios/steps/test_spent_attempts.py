"""A step whose attempts are spent ends its run."""

from stepwell_engine.limits import DAY
from tests.scenarios.homes import Home
from tests.scenarios.receiver import Receiver, Reply


def test_a_run_fails_when_the_attempts_of_a_step_are_spent(home: Home, receiver: Receiver) -> None:
    receiver.script(Reply(500, b"no stock"))
    home.ok("PUT", "/queues/emails", {})
    home.publish(
        "order",
        {"key": "pay", "kind": "webhook", "target": receiver.url, "max_attempts": 2},
        {"key": "notify", "kind": "enqueue", "target": "emails"},
    )
    run = home.finish("order", home.start("order"))
    assert (run["status"], run["cursor"], run["output"]) == ("failed", 0, None)
    assert "answered 500: no stock" in run["last_error"]
    assert run["reason"] is None
    (step,) = run["steps"]
    assert (step["key"], step["status"], step["attempt"]) == ("pay", "failed", 2)
    assert step["error"] == run["last_error"]
    assert len(receiver.calls) == 2
    assert home.messages("emails") == []


def test_a_failed_run_stays_as_it_is(home: Home, receiver: Receiver) -> None:
    receiver.script(Reply(500))
    step = {"key": "pay", "kind": "webhook", "target": receiver.url, "max_attempts": 1}
    home.publish("order", step)
    run_id = home.start("order")
    failed = home.finish("order", run_id)
    home.clock.at += DAY
    home.drain()
    assert home.run("order", run_id) == failed
    assert len(receiver.calls) == 1
    refused = home.request("POST", f"/workflows/order/runs/{run_id}/cancel")
    assert (refused.status, refused.body["code"]) == (409, "run_finished")
