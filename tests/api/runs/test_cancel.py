"""Cancelling runs over the API."""

import pytest

from stepwell_engine.core.run.attempt import Attempt, Outcome, Succeeded
from tests.api.home import NAP, RUNS, Home, refused, sql


def test_a_cancel_goes_down_to_the_children_if_asked(home: Home) -> None:
    fulfil = {"key": "fulfil", "kind": "subworkflow", "target": "fulfilment"}
    home.publish("orders", fulfil)
    home.publish("fulfilment", NAP)
    for cascade, status in (("true", "cancelled"), ("false", "pending"), (None, "pending")):
        run_id = home.start()
        home.turn(run_id)
        query = {} if cascade is None else {"cascade": cascade}
        answer = home.call("POST", f"{RUNS}/{run_id}/cancel", query=query)
        assert (answer.status, answer.body["status"]) == (200, "cancelled")
        child = home.show(run_id)["steps"][0]["output"]
        shown = home.show(child, "fulfilment")
        assert shown["status"] == status
        assert shown["parent"] == {"run_id": run_id, "workflow": "orders"}


def test_a_cascade_is_true_or_false(home: Home) -> None:
    home.publish()
    run_id = home.start()
    answer = home.call("POST", f"{RUNS}/{run_id}/cancel", query={"cascade": "deep"})
    assert "?cascade must be true or false" in refused(answer, "invalid_request")
    assert home.show(run_id)["status"] == "pending"


@pytest.mark.parametrize("body", [None, {}])
def test_a_live_run_is_cancelled(home: Home, body: object) -> None:
    home.publish("orders", sql("a"), NAP, sql("b"))
    run_id = home.start()
    home.turn(run_id)
    answer = home.call("POST", f"{RUNS}/{run_id}/cancel", body)
    assert answer.status == 200
    assert answer.body == {"id": run_id, "status": "cancelled"}
    shown = home.show(run_id)
    assert (shown["status"], shown["reason"]) == ("cancelled", None)
    assert [(one["key"], one["status"]) for one in shown["steps"]] == [
        ("a", "succeeded"),
        ("nap", "cancelled"),
    ]
    assert shown["steps"][1]["finished_at"] == shown["finished_at"]


def test_a_run_that_is_cancelled_before_it_begins_shows_where_it_stood(home: Home) -> None:
    home.publish("orders", sql("a"), sql("b"))
    run_id = home.start()
    home.call("POST", f"{RUNS}/{run_id}/cancel")
    assert [(one["key"], one["status"]) for one in home.show(run_id)["steps"]] == [
        ("a", "cancelled")
    ]


def test_a_step_in_flight_of_a_cancelled_run_is_running_until_it_is_recorded(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.publish("orders", sql("a"), sql("b"))
    run_id = home.start()

    def run(attempt: Attempt) -> Outcome:
        home.call("POST", f"{RUNS}/{run_id}/cancel")
        shown = home.show(run_id)
        assert (shown["status"], shown["steps"][0]["status"]) == ("cancelled", "running")
        return Succeeded(b"1")

    monkeypatch.setattr(home, "run", run)
    home.turn(run_id)
    shown = home.show(run_id)
    assert (shown["status"], shown["output"]) == ("cancelled", 1)
    assert [(one["key"], one["status"]) for one in shown["steps"]] == [("a", "succeeded")]


def test_an_ended_run_cannot_be_cancelled(home: Home) -> None:
    home.publish()
    run_id = home.start()
    home.turn(run_id)
    answer = home.call("POST", f"{RUNS}/{run_id}/cancel")
    assert answer.status == 409
    assert "succeeded already" in refused(answer, "run_finished")


def test_a_cancel_takes_no_fields(home: Home) -> None:
    home.publish()
    run_id = home.start()
    answer = home.call("POST", f"{RUNS}/{run_id}/cancel", {"why": "x"})
    message = refused(answer, "invalid_request")
    assert message == "$.why is an unknown field: none are allowed"
    assert home.show(run_id)["status"] == "pending"
