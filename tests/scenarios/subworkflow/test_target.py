"""Which version a child runs, and what happens if there is none."""

from tests.scenarios.homes import Home
from tests.scenarios.receiver import Receiver
from tests.scenarios.step_builders import answer_by_path, call, doomed, nap, runs_of, states_of


def test_the_version_is_resolved_when_the_child_starts(home: Home) -> None:
    home.publish("fulfil", nap("1h"))
    home.publish("order", nap("10m"), call("fulfil"))
    home.start("order")
    home.drain()
    home.publish("fulfil", nap("1s"))
    home.ok("PUT", "/workflows/fulfil", {"enabled": False, "steps": [nap("2s")]})
    home.until(lambda: runs_of(home, "fulfil") != [])
    (child_id,) = runs_of(home, "fulfil")
    assert home.run("fulfil", child_id)["version"] == 2


def test_every_new_child_takes_the_version_of_its_time(home: Home, receiver: Receiver) -> None:
    answer_by_path(receiver, {"doomed": [500]})
    home.publish("fulfil", doomed(receiver))
    home.publish("order", call("fulfil"))
    run_id = home.start("order")
    home.drain()
    home.publish("fulfil", nap("1s"))
    home.publish("order", nap("1s"))
    run = home.finish("order", run_id)
    assert (run["status"], run["version"]) == ("succeeded", 1)
    versions = [home.run("fulfil", child)["version"] for child in runs_of(home, "fulfil")]
    assert versions == [1, 2]


def test_a_target_that_is_not_there_fails_at_once(home: Home) -> None:
    home.publish("order", call("nowhere", max_attempts=5))
    run_id = home.start("order")
    assert home.finish("order", run_id)["status"] == "failed"
    step = home.step("order", run_id, "call")
    assert (step["attempt"], step["code"]) == (1, "unknown_resource")
    assert "nowhere" in step["error"]
    assert "output" not in step


def test_a_disabled_target_costs_attempts_until_it_is_enabled(home: Home) -> None:
    home.publish("fulfil", nap("1s"))
    home.ok("PATCH", "/workflows/fulfil", {"enabled": False})
    home.publish("order", call("fulfil"))
    run_id = home.start("order")
    home.drain()
    step = home.step("order", run_id, "call")
    assert (step["status"], step["attempt"]) == ("retrying", 1)
    assert "no version" in step["error"]
    assert runs_of(home, "fulfil") == []
    home.ok("PATCH", "/workflows/fulfil", {"enabled": True})
    assert home.finish("order", run_id)["status"] == "succeeded"
    assert states_of(home, "fulfil") == ["succeeded"]


def test_a_child_in_flight_goes_on_under_a_disabled_name(home: Home) -> None:
    home.publish("fulfil", nap("1h"))
    home.publish("order", call("fulfil"))
    run_id = home.start("order")
    home.drain()
    home.ok("PATCH", "/workflows/fulfil", {"enabled": False})
    home.ok("PATCH", "/workflows/order", {"enabled": False})
    assert home.finish("order", run_id)["status"] == "succeeded"
