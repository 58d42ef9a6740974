"""A run that fails of its structure, not of a step, is not walked backwards."""

import pytest

from stepwell_engine import limits
from tests.scenarios.homes import Home
from tests.scenarios.receiver import Receiver
from tests.scenarios.step_builders import (
    answer_by_path,
    called,
    compensated,
    doomed,
    hook,
    statuses,
)


def test_the_step_ceiling_ends_a_run_without_compensating_anything(
    home: Home, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_RUN_ATTEMPTS", 2)
    home.publish(
        "order", compensated(receiver, "a"), compensated(receiver, "b"), hook(receiver, "c")
    )
    run = home.finish("order", home.start("order"))
    assert (run["status"], run["compensation"]) == ("failed", {"state": "none"})
    assert "has executed 2 attempts" in run["last_error"]
    assert statuses(run) == {"a": "succeeded", "b": "succeeded", "c": "cancelled"}
    assert called(receiver) == ["a", "b"]


def test_the_ceiling_itself_may_be_reached(
    home: Home, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_RUN_ATTEMPTS", 3)
    home.publish(
        "order", compensated(receiver, "a"), compensated(receiver, "b"), hook(receiver, "c")
    )
    assert home.finish("order", home.start("order"))["status"] == "succeeded"


def test_compensating_that_meets_the_ceiling_stops_there(
    home: Home, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_RUN_ATTEMPTS", 4)
    answer_by_path(receiver, {"doomed": [500]})
    home.publish("order", compensated(receiver, "a"), compensated(receiver, "b"), doomed(receiver))
    run = home.finish("order", home.start("order"))
    assert run["status"] == "failed"
    assert run["compensation"] == {"state": "failed", "step": "a"}
    assert run["last_error"].startswith("rollback stopped: this run has executed 4 attempts")
    assert called(receiver)[3:] == ["undo-b"]
