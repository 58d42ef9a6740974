"""A wait for a child that times out cancels that child before it starts another."""

from tests.scenarios.homes import Home
from tests.scenarios.receiver import Receiver
from tests.scenarios.step_builders import call, hook, nap, runs_of, send, states_of


def test_the_abandoned_child_is_cancelled_before_the_next_begins(
    home: Home, receiver: Receiver
) -> None:
    home.publish("fulfil", nap("1h"), hook(receiver, "never"))
    home.publish("order", call("fulfil", max_attempts=2, timeout_seconds=60))
    run_id = home.start("order")
    home.drain()
    assert states_of(home, "fulfil") == ["sleeping"]
    home.until(lambda: len(runs_of(home, "fulfil")) == 2)
    assert states_of(home, "fulfil") == ["cancelled", "sleeping"]
    first, second = (home.run("fulfil", child) for child in runs_of(home, "fulfil"))
    assert first["finished_at"] < second["created_at"]

    run = home.finish("order", run_id)
    assert run["status"] == "failed"
    assert states_of(home, "fulfil") == ["cancelled", "cancelled"]
    step = home.step("order", run_id, "call")
    assert (step["attempt"], step["code"]) == (2, "timeout")
    assert "did not end within 60 s" in run["last_error"]
    assert receiver.calls == []


def test_the_second_child_may_succeed(home: Home) -> None:
    wait = {"key": "wait", "kind": "wait_for_signal", "signal": "go"}
    home.publish("fulfil", wait)
    home.publish("order", call("fulfil", max_attempts=2, timeout_seconds=60))
    run_id = home.start("order")
    home.until(lambda: states_of(home, "fulfil") == ["cancelled", "waiting"])
    send(home, "fulfil", runs_of(home, "fulfil")[1], "go", payload=2)
    run = home.finish("order", run_id)
    assert (run["status"], run["output"]) == ("succeeded", 2)
