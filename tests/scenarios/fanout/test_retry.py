"""A child of a fan-out is tried again on its own budget; its siblings do not notice."""

from tests.scenarios.homes import Home
from tests.scenarios.receiver import Receiver
from tests.scenarios.step_builders import answer_by_path, called, fan, hook, statuses


def test_a_child_backs_off_while_its_siblings_are_done(home: Home, receiver: Receiver) -> None:
    answer_by_path(receiver, {"crm": [500, 500, 200]})
    home.publish("order", *fan(hook(receiver, "mail"), hook(receiver, "crm", max_attempts=5)))
    run_id = home.start("order")
    home.drain()
    waiting = home.run("order", run_id)
    assert statuses(waiting) == {
        "all": "succeeded",
        "mail": "succeeded",
        "crm": "retrying",
        "joined": "waiting",
    }
    assert waiting["reason"].startswith("retrying step crm at ")
    assert waiting["reason"].endswith("attempt 2 of 5")
    assert waiting["status"] == "pending"

    run = home.finish("order", run_id)
    assert run["status"] == "succeeded"
    assert home.step("order", run_id, "crm")["attempt"] == 3
    assert home.step("order", run_id, "mail")["attempt"] == 1
    assert sorted(called(receiver)) == ["crm", "crm", "crm", "mail"]


def test_children_back_off_each_by_its_own_attempts(home: Home, receiver: Receiver) -> None:
    answer_by_path(receiver, {"a": [500, 200], "b": [500, 500, 500, 200]})
    home.publish("order", *fan(hook(receiver, "a"), hook(receiver, "b", max_attempts=4)))
    run_id = home.start("order")
    assert home.finish("order", run_id)["status"] == "succeeded"
    assert home.step("order", run_id, "a")["attempt"] == 2
    assert home.step("order", run_id, "b")["attempt"] == 4


def test_every_attempt_of_a_child_carries_the_same_id(home: Home, receiver: Receiver) -> None:
    answer_by_path(receiver, {"a": [500, 200]})
    home.publish("order", *fan(hook(receiver, "a"), hook(receiver, "b")))
    run_id = home.start("order")
    home.finish("order", run_id)
    ids = [request.headers["webhook-id"] for request in receiver.at("/a")]
    assert ids == [f"{run_id}:a"] * 2
