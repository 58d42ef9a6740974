"""Sending signals over the API."""

from typing import Any

import pytest

from stepwell_engine import limits
from tests.api.home import RUNS, Answer, Home, refused
from tests.service.world import START

APPROVE = {"key": "approve", "kind": "wait_for_signal", "signal": "approved"}


@pytest.fixture
def waiting(home: Home) -> str:
    home.publish("orders", APPROVE)
    run_id = home.start()
    home.turn(run_id)
    return run_id


def send(home: Home, run_id: str, signal: object = "approved", **body: Any) -> Answer:
    return home.call("POST", f"{RUNS}/{run_id}/signals", {"signal": signal, **body})


def test_a_signal_is_answered_with_its_id_and_ends_the_wait(home: Home, waiting: str) -> None:
    home.clock.sleep(1_500)
    answer = send(home, waiting, payload={"by": "u_123"})
    assert answer.status == 201
    assert answer.body == {
        "id": answer.body["id"],
        "run_id": waiting,
        "signal": "approved",
        "created_at": "2023-11-14T22:13:21.500Z",
    }
    home.turn(waiting)
    shown = home.show(waiting)
    assert (shown["status"], shown["output"]) == ("succeeded", {"by": "u_123"})
    assert shown["steps"][0]["output"] == {"by": "u_123"}


@pytest.mark.parametrize("body", [{}, {"payload": None}])
def test_an_absent_payload_is_null(home: Home, waiting: str, body: dict[str, Any]) -> None:
    assert send(home, waiting, **body).status == 201
    home.turn(waiting)
    shown = home.show(waiting)
    assert shown["status"] == "succeeded"
    assert shown["output"] is None
    assert shown["steps"][0]["output"] is None


@pytest.mark.parametrize("payload", [0, False, "", [], {}, "ü", [1, {"a": None}]])
def test_a_payload_is_any_json_value(home: Home, waiting: str, payload: object) -> None:
    send(home, waiting, payload=payload)
    home.turn(waiting)
    assert home.show(waiting)["output"] == payload


@pytest.mark.parametrize(("over", "status"), [(0, 201), (1, 413)])
def test_a_payload_has_at_most_32_kib(home: Home, waiting: str, over: int, status: int) -> None:
    answer = send(home, waiting, payload="x" * (limits.MAX_SIGNAL_PAYLOAD - 2 + over))
    assert answer.status == status
    if over:
        assert "32,769 bytes" in refused(answer, "payload_too_large")
        assert home.show(waiting)["status"] == "waiting"


def test_the_thousand_and_first_pending_signal_is_refused(home: Home, waiting: str) -> None:
    for _ in range(limits.MAX_PENDING_SIGNALS):
        assert send(home, waiting, "other").status == 201
    answer = send(home, waiting, "other")
    assert answer.status == 429
    assert "1000 signals of this run" in refused(answer, "too_many_signals")


def test_a_finished_run_takes_no_signal(home: Home, waiting: str) -> None:
    home.call("POST", f"{RUNS}/{waiting}/cancel")
    answer = send(home, waiting)
    assert answer.status == 409
    assert "cancelled already" in refused(answer, "run_finished")


def test_a_repeated_key_answers_with_the_first_delivery(home: Home, waiting: str) -> None:
    first = send(home, waiting, payload=1, idempotency_key="approval-42")
    home.clock.sleep(10)
    again = send(home, waiting, payload=2, idempotency_key="approval-42")
    assert (again.status, again.body) == (first.status, first.body)
    home.turn(waiting)
    assert home.show(waiting)["output"] == 1
    after = send(home, waiting, payload=3, idempotency_key="approval-42")
    assert (after.status, after.body) == (first.status, first.body)


@pytest.mark.parametrize("signal", ["", "Approved", "-a", "a b", "x" * 65, "ä"])
def test_a_malformed_name_is_refused(home: Home, waiting: str, signal: str) -> None:
    answer = send(home, waiting, signal)
    assert answer.status == 400
    assert "signal must" in refused(answer, "invalid_request")


@pytest.mark.parametrize("signal", ["a", "0", "order.paid_2-x", "x" * 64])
def test_a_name_of_the_pattern_is_taken(home: Home, waiting: str, signal: str) -> None:
    assert send(home, waiting, signal).status == 201


@pytest.mark.parametrize("key", ["", "k" * 201])
def test_a_key_of_a_wrong_length_is_refused(home: Home, waiting: str, key: str) -> None:
    answer = send(home, waiting, idempotency_key=key)
    assert "1 to 200 are allowed" in refused(answer, "invalid_request")


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({}, "$.signal is missing"),
        ({"signal": 1}, "$.signal must be text, not 1"),
        ({"signal": "a", "idempotency_key": 7}, "$.idempotency_key must be text, not 7"),
        ({"signal": "a", "body": 1}, "$.body is an unknown field"),
    ],
)
def test_a_wrong_body_is_refused(home: Home, waiting: str, body: object, complaint: str) -> None:
    answer = home.call("POST", f"{RUNS}/{waiting}/signals", body)
    assert complaint in refused(answer, "invalid_request")


def test_a_body_is_required(home: Home, waiting: str) -> None:
    answer = home.call("POST", f"{RUNS}/{waiting}/signals")
    assert "the body is empty" in refused(answer, "invalid_request")


def test_a_refused_signal_leaves_nothing(home: Home, waiting: str) -> None:
    send(home, waiting, "Bad")
    send(home, waiting, payload="x" * limits.MAX_SIGNAL_PAYLOAD)
    head = home.runs.get(waiting)
    assert head is not None
    assert dict(head.inbox) == {}
    assert head.ready_at > START
