"""A child that somebody cancelled is never tried again."""

from tests.scenarios.homes import Home
from tests.scenarios.receiver import Receiver
from tests.scenarios.step_builders import call, cancel, compensated, nap, runs_of, states_of


def test_a_cancelled_child_fails_its_parent_at_once(home: Home, receiver: Receiver) -> None:
    home.publish("fulfil", nap("1h"))
    home.publish("order", compensated(receiver, "pay"), call("fulfil", max_attempts=5))
    run_id = home.start("order")
    home.drain()
    (child_id,) = runs_of(home, "fulfil")
    before = home.clock.at
    assert cancel(home, "fulfil", child_id).status == 200
    home.drain()
    assert home.clock.at == before
    run = home.run("order", run_id)
    assert (run["status"], run["compensation"]) == ("failed", {"state": "compensated"})
    assert run["last_error"] == f"child run {child_id} was cancelled"
    step = home.step("order", run_id, "call")
    assert (step["status"], step["attempt"], step["code"]) == ("failed", 1, "child_cancelled")
    assert states_of(home, "fulfil") == ["cancelled"]
