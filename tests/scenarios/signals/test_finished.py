"""A signal that nothing could ever take is refused."""

import pytest

from tests.scenarios.homes import Home
from tests.scenarios.step_builders import await_signal, cancel, nap, send


def test_a_run_that_has_ended_takes_none(home: Home) -> None:
    home.publish("order", nap("1s"))
    run_id = home.start("order")
    home.finish("order", run_id)
    refused = send(home, "order", run_id)
    assert (refused.status, refused.body["code"]) == (409, "run_finished")
    assert "succeeded already" in refused.body["detail"]


def test_a_cancelled_run_takes_none(home: Home) -> None:
    home.publish("order", await_signal())
    run_id = home.start("order")
    cancel(home, "order", run_id)
    refused = send(home, "order", run_id)
    assert (refused.status, refused.body["code"]) == (409, "run_finished")


@pytest.mark.parametrize("path", ["/workflows/other/runs/{}", "/workflows/order/runs/none"])
def test_a_run_that_is_not_there_takes_none(home: Home, path: str) -> None:
    home.publish("order", await_signal())
    home.publish("other", await_signal())
    run_id = home.start("order")
    body = {"signal": "approved"}
    refused = home.request("POST", f"{path.format(run_id)}/signals", body)
    assert (refused.status, refused.body["code"]) == (404, "not_found")


def test_a_run_keeps_a_thousand_signals(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    room = home.room_for_signals(monkeypatch)
    home.publish("order", await_signal("go"))
    run_id = home.start("order")
    home.signal_often("order", run_id, "other", room - 1)
    assert send(home, "order", run_id, "other").status == 201
    refused = send(home, "order", run_id, "go")
    assert (refused.status, refused.body["code"]) == (429, "too_many_signals")
    home.drain()
    assert home.run("order", run_id)["status"] == "waiting"
