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


def test_many_early_signals_are_taken_in_the_order_in_which_they_came(home: Home) -> None:
    """More than stand in the run's document, of several names, sizes, with keys and without."""
    waits = [await_signal("paid" if n % 2 else "approved", f"wait-{n}") for n in range(10)]
    home.publish("order", nap("1h"), *waits)
    run_id = home.start("order")
    sent = [n if n % 3 else f"{n}" * 500 for n in range(10)]
    for name, first in (("unknown", 0), ("paid", 1), ("approved", 0)):
        for number in range(first, 10, 2):
            key = f"{number}" if number % 4 == 0 else None
            for _ in range(1 if key is None else 2):
                body = {"payload": sent[number], "idempotency_key": key}
                assert send(home, "order", run_id, name, **body).status == 201
    home.drain()
    assert home.run("order", run_id)["status"] == "sleeping"
    run = home.finish("order", run_id)
    assert run["status"] == "succeeded"
    assert [step["output"] for step in run["steps"][1:]] == sent
