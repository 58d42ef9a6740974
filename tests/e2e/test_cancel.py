"""A waiting run on the deployed template is cancelled, and never goes on."""

import pytest

from tests.e2e.installation import Installation
from tests.scenarios.receiver import Receiver
from tests.scenarios.step_builders import await_signal, called, hook, statuses

pytestmark = pytest.mark.e2e


def test_a_waiting_run_can_be_cancelled_once(installed: Installation, receiver: Receiver) -> None:
    installed.publish("drop", hook(receiver, "before"), await_signal(), hook(receiver, "after"))
    run_id = installed.start("drop")
    installed.parked("drop", run_id, cursor=1)
    answer = installed.cancel("drop", run_id)
    assert (answer.status_code, answer.json()) == (200, {"id": run_id, "status": "cancelled"})
    refused = [installed.cancel("drop", run_id), installed.signal("drop", run_id, "approved")]
    for answer in refused:
        assert (answer.status_code, answer.json()["code"]) == (409, "run_finished")
        assert "cancelled already" in answer.json()["detail"]
    installed.drain()
    run = installed.run("drop", run_id)
    assert (run["status"], run["reason"]) == ("cancelled", None)
    assert run["finished_at"] is not None
    assert statuses(run) == {"before": "succeeded", "wait": "cancelled"}
    assert called(receiver) == ["before"]
