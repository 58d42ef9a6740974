"""A fan-out is compensated through its children, together, as they ran."""

import threading

from tests.scenarios.homes import Home
from tests.scenarios.receiver import Call, Receiver, Reply
from tests.scenarios.step_builders import (
    answer_by_path,
    called,
    compensated,
    doomed,
    fan,
    hook,
    statuses,
)


def test_the_children_of_a_joined_fanout_are_compensated_together(
    home: Home, receiver: Receiver
) -> None:
    together = threading.Barrier(3)

    def answer(request: Call) -> Reply:
        if request.path.startswith("/undo-c"):
            together.wait(30)  # nobody is answered before all three are there
        return Reply(500 if request.path == "/doomed" else 200)

    receiver.answer = answer
    children = [compensated(receiver, f"c{n}") for n in range(3)]
    home.publish(
        "order",
        compensated(receiver, "first"),
        *fan(*children, hook(receiver, "log")),
        doomed(receiver),
    )
    run_id = home.start("order")
    run = home.finish("order", run_id)
    assert run["compensation"] == {"state": "compensated"}
    compensating = called(receiver)[6:]
    assert sorted(compensating[:3]) == ["undo-c0", "undo-c1", "undo-c2"]
    assert compensating[3:] == ["undo-first"]
    assert "compensate:log" not in statuses(run)
    compensation = home.step("order", run_id, "compensate:c1")
    assert (compensation["parent_step_id"], compensation["compensating"]) == ("all", True)


def test_the_siblings_of_a_failed_child_are_compensated_and_the_failed_one_is_not(
    home: Home, receiver: Receiver
) -> None:
    answer_by_path(receiver, {"bad": [500]})
    home.publish(
        "order",
        compensated(receiver, "first"),
        *fan(compensated(receiver, "good"), compensated(receiver, "bad", max_attempts=2)),
    )
    run = home.finish("order", home.start("order"))
    assert run["compensation"] == {"state": "compensated"}
    assert called(receiver)[-2:] == ["undo-good", "undo-first"]
    assert "undo-bad" not in called(receiver)
    assert "compensate:bad" not in statuses(run)


def test_a_sibling_that_succeeds_late_is_compensated_too(home: Home, receiver: Receiver) -> None:
    failed = threading.Event()

    def answer(request: Call) -> Reply:
        if request.path == "/bad":
            failed.set()
            return Reply(500)
        if request.path == "/late":
            failed.wait(30)
        return Reply()

    receiver.answer = answer
    home.publish(
        "order", *fan(compensated(receiver, "late"), compensated(receiver, "bad", max_attempts=1))
    )
    run = home.finish("order", home.start("order"))
    assert statuses(run) == {
        "all": "succeeded",
        "late": "succeeded",
        "compensate:late": "succeeded",
        "bad": "failed",
        "joined": "failed",
    }
    assert called(receiver)[-1] == "undo-late"


def test_children_that_never_ended_well_are_not_compensated(home: Home, receiver: Receiver) -> None:
    answer_by_path(receiver, {"bad": [500], "busy": [503]})
    children = [compensated(receiver, "busy"), compensated(receiver, "bad", max_attempts=1)]
    home.publish("order", *fan(*children))
    run = home.finish("order", home.start("order"))
    assert statuses(run)["busy"] == "cancelled"
    assert run["compensation"] == {"state": "none"}
    assert [path for path in called(receiver) if path.startswith("undo")] == []
