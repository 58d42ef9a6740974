"""A signal that comes before anybody waits for it is kept, and taken when the run arrives."""

from tests.scenarios.homes import Home
from tests.scenarios.step_builders import await_signal, nap, send


def test_a_signal_sent_before_the_run_begins_is_taken(home: Home) -> None:
    home.publish("order", await_signal())
    run_id = home.start("order")
    assert send(home, "order", run_id, payload={"by": "u_1"}).status == 201
    run = home.finish("order", run_id)
    assert (run["status"], run["output"]) == ("succeeded", {"by": "u_1"})


def test_a_signal_sent_during_an_earlier_sleep_waits_for_its_step(home: Home) -> None:
    home.publish("order", nap("1h"), await_signal())
    run_id = home.start("order")
    home.drain()
    send(home, "order", run_id, payload=1)
    home.drain()
    asleep = home.run("order", run_id)
    assert (asleep["status"], asleep["cursor"]) == ("sleeping", 0)
    run = home.finish("order", run_id)
    assert (run["status"], run["output"]) == ("succeeded", 1)
    wait = home.step("order", run_id, "wait")
    assert wait["started_at"] == wait["finished_at"] == run["steps"][0]["finished_at"]


def test_a_signal_that_nobody_ever_waits_for_stops_nothing(home: Home) -> None:
    home.publish("order", nap("1m"))
    run_id = home.start("order")
    send(home, "order", run_id, "unknown")
    assert home.finish("order", run_id)["status"] == "succeeded"
