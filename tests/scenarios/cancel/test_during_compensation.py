"""Cancelling a run that compensates stops the compensating where it is."""

import pytest

from stepwell_engine.limits import DAY
from tests.scenarios.homes import Home
from tests.scenarios.receiver import Call, Receiver, Reply
from tests.scenarios.step_builders import (
    answer_by_path,
    called,
    cancel,
    compensated,
    doomed,
    statuses,
)


@pytest.fixture
def steps(receiver: Receiver) -> list[dict[str, object]]:
    return [compensated(receiver, "a"), compensated(receiver, "b"), doomed(receiver)]


def stays(home: Home, run_id: str) -> dict[str, object]:
    before = home.run("order", run_id)
    home.clock.at += DAY
    home.drain()
    assert home.run("order", run_id) == before
    return before


def test_a_compensation_that_backs_off_is_not_tried_again(
    home: Home, receiver: Receiver, steps: list[dict[str, object]]
) -> None:
    answer_by_path(receiver, {"doomed": [500], "undo-b": [500]})
    home.publish("order", *steps)
    run_id = home.start("order")
    home.drain()
    assert cancel(home, "order", run_id).status == 200
    run = stays(home, run_id)
    assert (run["status"], run["compensation"]) == (
        "cancelled",
        {"state": "incomplete", "step": "b"},
    )
    assert statuses(run)["compensate:b"] == "cancelled"
    assert called(receiver)[3:] == ["undo-b"]


def test_a_compensation_in_flight_is_recorded_and_the_walk_goes_no_further(
    home: Home, receiver: Receiver, steps: list[dict[str, object]]
) -> None:
    seen: list[object] = []

    def answer(request: Call) -> Reply:
        if request.path == "/undo-b":
            seen.append(home.run("order", run_id)["compensation"])
            cancel(home, "order", run_id)
            seen.append(statuses(home.run("order", run_id))["compensate:b"])
        return Reply(500 if request.path == "/doomed" else 200)

    receiver.answer = answer
    home.publish("order", *steps)
    run_id = home.start("order")
    home.drain()
    assert seen == [{"state": "compensating", "step": "b"}, "running"]
    run = stays(home, run_id)
    assert (run["status"], run["compensation"]) == (
        "cancelled",
        {"state": "incomplete", "step": "b"},
    )
    assert statuses(run)["compensate:b"] == "succeeded"
    assert "compensate:a" not in statuses(run)
    assert called(receiver)[3:] == ["undo-b"]


def test_a_cancelled_run_is_not_compensated(home: Home, receiver: Receiver) -> None:
    nap = {"key": "nap", "kind": "sleep", "sleep_for": "1h"}
    home.publish("order", compensated(receiver, "a"), nap)
    run_id = home.start("order")
    home.drain()
    cancel(home, "order", run_id)
    run = stays(home, run_id)
    assert (run["status"], run["compensation"]) == ("cancelled", {"state": "none"})
    assert called(receiver) == ["a"]
