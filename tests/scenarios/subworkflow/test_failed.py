"""A child that failed costs its parent an attempt; the next attempt is a new child."""

from tests.scenarios.homes import Home
from tests.scenarios.receiver import Receiver
from tests.scenarios.step_builders import (
    answer_by_path,
    call,
    called,
    doomed,
    hook,
    runs_of,
    states_of,
)


def test_a_failed_child_is_followed_by_a_new_one(home: Home, receiver: Receiver) -> None:
    answer_by_path(receiver, {"doomed": [500, 200]})
    home.publish("fulfil", doomed(receiver))
    home.publish("order", call("fulfil", max_attempts=2))
    run_id = home.start("order")
    home.drain()
    backing_off = home.run("order", run_id)
    (failed,) = runs_of(home, "fulfil")
    step = home.step("order", run_id, "call")
    assert (step["status"], step["attempt"], step["output"]) == ("retrying", 1, failed)
    assert backing_off["status"] == "pending"
    assert f"child run {failed} ended failed" in backing_off["last_error"]
    assert backing_off["reason"].startswith("retrying step call at ")

    run = home.finish("order", run_id)
    assert run["status"] == "succeeded"
    assert states_of(home, "fulfil") == ["failed", "succeeded"]
    step = home.step("order", run_id, "call")
    assert (step["attempt"], step["output"]) == (2, runs_of(home, "fulfil")[1])
    assert "error" not in step


def test_a_spent_budget_fails_the_parent(home: Home, receiver: Receiver) -> None:
    answer_by_path(receiver, {"doomed": [500]})
    home.publish("fulfil", doomed(receiver))
    home.publish("order", call("fulfil", max_attempts=3), hook(receiver, "after"))
    run_id = home.start("order")
    run = home.finish("order", run_id)
    assert run["status"] == "failed"
    step = home.step("order", run_id, "call")
    assert (step["status"], step["attempt"], step["code"]) == ("failed", 3, "child_failed")
    children = runs_of(home, "fulfil")
    assert len(children) == 3
    assert run["last_error"].startswith(f"child run {children[-1]} ended failed: ")
    assert "answered 500" in run["last_error"]
    assert called(receiver) == ["doomed"] * 3
