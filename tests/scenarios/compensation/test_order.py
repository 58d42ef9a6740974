"""A run that fails is walked backwards: what succeeded is compensated, one step at a time."""

from tests.scenarios.homes import Home
from tests.scenarios.receiver import Receiver
from tests.scenarios.step_builders import (
    answer_by_path,
    await_signal,
    call,
    called,
    compensated,
    doomed,
    hook,
    nap,
    statuses,
)

DELIVERED = {"delivered": True, "status": 200}


def test_the_walk_goes_backwards_from_the_step_before_the_one_that_failed(
    home: Home, receiver: Receiver
) -> None:
    answer_by_path(receiver, {"ship": [500]})
    home.publish(
        "order",
        compensated(receiver, "charge"),
        hook(receiver, "log"),
        nap("1s"),
        compensated(receiver, "reserve"),
        compensated(receiver, "ship", max_attempts=2),
        compensated(receiver, "after"),
    )
    run_id = home.start("order")
    run = home.finish("order", run_id)
    assert called(receiver) == [
        "charge",
        "log",
        "reserve",
        "ship",
        "ship",
        "undo-reserve",
        "undo-charge",
    ]
    assert statuses(run) == {
        "charge": "succeeded",
        "compensate:charge": "succeeded",
        "log": "succeeded",
        "nap": "succeeded",
        "reserve": "succeeded",
        "compensate:reserve": "succeeded",
        "ship": "failed",
    }
    assert list(statuses(run))[:2] == ["charge", "compensate:charge"]
    marked = {step["key"] for step in run["steps"] if step.get("compensating") is True}
    assert marked == {"compensate:charge", "compensate:reserve"}
    assert all("compensating" not in step for step in run["steps"] if step["key"] not in marked)


def test_a_compensated_run_is_a_failed_run(home: Home, receiver: Receiver) -> None:
    answer_by_path(receiver, {"doomed": [500]})
    home.publish("order", compensated(receiver, "charge"), doomed(receiver))
    run = home.finish("order", home.start("order"))
    assert (run["status"], run["cursor"]) == ("failed", 1)
    assert run["compensation"] == {"state": "compensated"}
    assert "answered 500" in run["last_error"]
    assert run["output"] == DELIVERED


def test_the_output_of_a_compensation_is_not_the_runs(home: Home, receiver: Receiver) -> None:
    answer_by_path(receiver, {"doomed": [500], "undo-charge": [202]})
    home.publish("order", compensated(receiver, "charge"), doomed(receiver))
    run_id = home.start("order")
    run = home.finish("order", run_id)
    compensation = home.step("order", run_id, "compensate:charge")
    assert compensation["output"] == {"delivered": True, "status": 202}
    assert run["output"] == DELIVERED


def test_a_run_with_nothing_to_compensate_is_not_compensated(
    home: Home, receiver: Receiver
) -> None:
    answer_by_path(receiver, {"doomed": [500]})
    home.publish("order", hook(receiver, "log"), doomed(receiver))
    run = home.finish("order", home.start("order"))
    assert (run["status"], run["compensation"]) == ("failed", {"state": "none"})


def test_a_compensation_is_a_step_with_attempts_and_backoff_of_its_own(
    home: Home, receiver: Receiver
) -> None:
    answer_by_path(receiver, {"doomed": [500], "undo-charge": [500, 500, 200]})
    home.publish("order", compensated(receiver, "charge", attempts=4), doomed(receiver))
    run_id = home.start("order")
    home.drain()
    compensating = home.run("order", run_id)
    assert compensating["status"] == "pending"
    assert compensating["compensation"] == {"state": "compensating", "step": "charge"}
    assert compensating["reason"].startswith("retrying the compensation of step charge at ")
    assert compensating["reason"].endswith("attempt 2 of 4")
    compensation = home.step("order", run_id, "compensate:charge")
    assert (compensation["status"], compensation["attempt"], compensation["max_attempts"]) == (
        "retrying",
        1,
        4,
    )

    run = home.finish("order", run_id)
    assert run["compensation"] == {"state": "compensated"}
    assert home.step("order", run_id, "compensate:charge")["attempt"] == 3


def test_every_attempt_of_a_compensation_carries_the_same_id(
    home: Home, receiver: Receiver
) -> None:
    answer_by_path(receiver, {"doomed": [500], "undo-charge": [500, 200]})
    home.publish("order", compensated(receiver, "charge"), doomed(receiver))
    run_id = home.start("order")
    home.finish("order", run_id)
    ids = [request.headers["webhook-id"] for request in receiver.at("/undo-charge")]
    assert ids == [f"{run_id}:compensate:charge"] * 2


def test_a_wait_that_expires_is_compensated_too(home: Home, receiver: Receiver) -> None:
    home.publish("order", compensated(receiver, "charge"), await_signal(timeout_seconds=60))
    run = home.finish("order", home.start("order"))
    assert run["compensation"] == {"state": "compensated"}
    assert called(receiver) == ["charge", "undo-charge"]


def test_a_subworkflow_compensates_the_parents_step_and_not_the_child(
    home: Home, receiver: Receiver
) -> None:
    answer_by_path(receiver, {"doomed": [500]})
    compensation = {"kind": "webhook", "target": f"{receiver.url}/undo-call"}
    home.publish("fulfil", compensated(receiver, "pick"))
    home.publish("order", call("fulfil", compensate=compensation), doomed(receiver))
    run_id = home.start("order")
    run = home.finish("order", run_id)
    assert run["compensation"] == {"state": "compensated"}
    assert called(receiver) == ["pick", "doomed", "undo-call"]
    child = home.run("fulfil", home.step("order", run_id, "call")["output"])
    assert (child["status"], child["compensation"]) == ("succeeded", {"state": "none"})
