"""A run may wait for several names, and for one name several times: each signal is taken once."""

from tests.scenarios.homes import Home
from tests.scenarios.step_builders import await_signal, send


def test_each_wait_takes_the_signal_of_its_name_whatever_the_order(home: Home) -> None:
    home.publish("order", await_signal("paid", "pay"), await_signal("shipped", "ship"))
    run_id = home.start("order")
    home.drain()
    send(home, "order", run_id, "shipped", payload=2)
    home.drain()
    assert home.run("order", run_id)["cursor"] == 0
    send(home, "order", run_id, "paid", payload=1)
    home.drain()
    run = home.run("order", run_id)
    assert [step["output"] for step in run["steps"]] == [1, 2]
    assert (run["status"], run["output"]) == ("succeeded", 2)


def test_a_signal_is_taken_by_one_wait_only(home: Home) -> None:
    home.publish("order", await_signal(key="first"), await_signal(key="second"))
    run_id = home.start("order")
    send(home, "order", run_id, payload=1)
    home.drain()
    half = home.run("order", run_id)
    assert (half["status"], half["cursor"]) == ("waiting", 1)
    send(home, "order", run_id, payload=2)
    home.drain()
    assert [step["output"] for step in home.run("order", run_id)["steps"]] == [1, 2]


def test_signals_of_one_name_are_taken_oldest_first(home: Home) -> None:
    home.publish("order", await_signal(key="first"), await_signal(key="second"))
    run_id = home.start("order")
    for payload in (1, 2):
        send(home, "order", run_id, payload=payload)
        home.clock.at += 10
    home.drain()
    run = home.run("order", run_id)
    assert [step["output"] for step in run["steps"]] == [1, 2]


def test_a_signal_goes_to_one_run(home: Home) -> None:
    home.publish("order", await_signal())
    one, other = home.start("order"), home.start("order")
    home.drain()
    send(home, "order", one)
    home.drain()
    assert home.run("order", one)["status"] == "succeeded"
    assert home.run("order", other)["status"] == "waiting"
