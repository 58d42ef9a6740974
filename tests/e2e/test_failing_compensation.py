"""A step on the deployed template that cannot be compensated stops the walk, and is named."""

import pytest

from tests.e2e.installation import Installation
from tests.scenarios.receiver import Receiver
from tests.scenarios.step_builders import answer_by_path, called, compensated, doomed, statuses

pytestmark = pytest.mark.e2e


def test_a_compensation_that_fails_stops_the_walk_and_is_named(
    installed: Installation, receiver: Receiver
) -> None:
    answer_by_path(receiver, {"doomed": [500], "undo-second": [500]})
    installed.publish(
        "stuck",
        compensated(receiver, "first"),
        compensated(receiver, "second", attempts=2),
        compensated(receiver, "third"),
        doomed(receiver),
    )
    run = installed.finish("stuck", installed.start("stuck"))
    assert run["status"] == "failed"
    assert run["compensation"] == {"state": "failed", "step": "second"}
    named = 'compensation of step "second" failed, rollback stopped: '
    assert run["last_error"].startswith(named)
    assert "answered 500" in run["last_error"]
    forwards = ["first", "second", "third", "doomed"]
    assert called(receiver) == [*forwards, "undo-third", "undo-second", "undo-second"]
    assert statuses(run) == {
        "first": "succeeded",
        "second": "succeeded",
        "compensate:second": "failed",
        "third": "succeeded",
        "compensate:third": "succeeded",
        "doomed": "failed",
    }
    marked = [step["key"] for step in run["steps"] if step.get("compensating") is True]
    assert marked == ["compensate:second", "compensate:third"]
