"""A sub-workflow is an ordinary run of another workflow, for which its parent waits."""

from tests.scenarios.homes import Home
from tests.scenarios.receiver import Receiver, Reply
from tests.scenarios.step_builders import await_signal, call, called, hook, nap, runs_of, send


def test_the_output_of_the_child_becomes_the_parents(home: Home, receiver: Receiver) -> None:
    receiver.script(Reply(200, b'{"parcel":7}'))
    home.ok("PUT", "/functions/pack", {"url": f"{receiver.url}/pack"})
    home.publish("fulfil", {"key": "pack", "kind": "function", "target": "pack"})
    home.publish("order", call("fulfil", payload={"warehouse": "eu-1"}))
    run_id = home.start("order")
    run = home.finish("order", run_id)
    assert (run["status"], run["output"]) == ("succeeded", {"parcel": 7})
    step = home.step("order", run_id, "call")
    (child_id,) = runs_of(home, "fulfil")
    assert (step["output"], step["child_output"]) == (child_id, {"parcel": 7})
    child = home.run("fulfil", child_id)
    assert (child["status"], child["input"]) == ("succeeded", {"warehouse": "eu-1"})
    assert (child["parent"], child["depth"]) == ({"run_id": run_id, "workflow": "order"}, 1)
    assert (run["parent"], run["depth"]) == (None, 0)


def test_the_parent_is_parked_while_its_child_runs(home: Home, receiver: Receiver) -> None:
    home.publish("fulfil", nap("3h"), await_signal())
    home.publish("order", call("fulfil"), hook(receiver, "after"))
    run_id = home.start("order")
    home.drain()
    parent = home.run("order", run_id)
    (child_id,) = runs_of(home, "fulfil")
    assert (parent["status"], parent["steps"][0]["status"]) == ("waiting", "waiting")
    assert parent["steps"][0]["output"] == child_id
    assert parent["reason"].startswith(f'waiting for run {child_id} of workflow "fulfil", until ')
    assert home.run("fulfil", child_id)["status"] == "sleeping"

    home.until(lambda: home.run("fulfil", child_id)["status"] == "waiting")
    assert home.run("order", run_id)["status"] == "waiting"
    before = home.clock.at
    assert send(home, "fulfil", child_id, payload="go").status == 201
    home.drain()
    assert home.clock.at == before
    assert home.run("order", run_id)["status"] == "succeeded"
    assert called(receiver) == ["after"]


def test_a_child_without_an_output_leaves_the_parents_alone(home: Home, receiver: Receiver) -> None:
    home.publish("fulfil", nap("1s"))
    home.publish("order", hook(receiver, "pay"), call("fulfil"))
    run_id = home.start("order")
    run = home.finish("order", run_id)
    assert run["output"] == {"delivered": True, "status": 200}
    assert "child_output" not in home.step("order", run_id, "call")


def test_a_child_without_a_payload_gets_an_empty_input(home: Home) -> None:
    home.publish("fulfil", nap("1s"))
    home.publish("order", call("fulfil"))
    home.finish("order", home.start("order"))
    (child_id,) = runs_of(home, "fulfil")
    assert home.run("fulfil", child_id)["input"] == {}


def test_children_of_a_test_run_are_test_runs(home: Home) -> None:
    home.publish("fulfil", nap("1s"))
    home.publish("order", call("fulfil"))
    home.finish("order", home.start("order", test=True))
    (child_id,) = runs_of(home, "fulfil")
    assert home.run("fulfil", child_id)["test"] is True
