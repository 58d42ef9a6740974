"""A compensation that fails for good stops the walk there: that is the state for a human."""

from tests.scenarios.homes import Home
from tests.scenarios.receiver import Receiver
from tests.scenarios.step_builders import answer_by_path, called, compensated, doomed, fan, statuses


def test_the_walk_stops_at_the_step_that_could_not_be_compensated(
    home: Home, receiver: Receiver
) -> None:
    answer_by_path(receiver, {"doomed": [500], "undo-b": [500]})
    home.publish(
        "order",
        compensated(receiver, "a"),
        compensated(receiver, "b", attempts=2),
        compensated(receiver, "c"),
        doomed(receiver),
    )
    run_id = home.start("order")
    run = home.finish("order", run_id)
    assert run["status"] == "failed"
    assert run["compensation"] == {"state": "failed", "step": "b"}
    assert run["last_error"].startswith('compensation of step "b" failed, rollback stopped: ')
    assert "answered 500" in run["last_error"]
    assert called(receiver)[4:] == ["undo-c", "undo-b", "undo-b"]
    shown = statuses(run)
    assert (shown["compensate:c"], shown["compensate:b"]) == ("succeeded", "failed")
    assert "compensate:a" not in shown


def test_a_child_that_could_not_be_compensated_is_named(home: Home, receiver: Receiver) -> None:
    answer_by_path(receiver, {"doomed": [500], "undo-bad": [500]})
    children = [compensated(receiver, "good"), compensated(receiver, "bad", attempts=1)]
    home.publish("order", compensated(receiver, "first"), *fan(*children), doomed(receiver))
    run = home.finish("order", home.start("order"))
    assert run["compensation"] == {"state": "failed", "step": "bad"}
    shown = statuses(run)
    assert (shown["compensate:good"], shown["compensate:bad"]) == ("succeeded", "failed")
    assert "undo-first" not in called(receiver)
