"""A parked run is woken by its signal at once, however long it would have waited."""

import pytest

from stepwell_engine.limits import DAY, MAX_SIGNAL_PAYLOAD
from tests.scenarios.homes import START, Home
from tests.scenarios.receiver import Receiver, Reply
from tests.scenarios.step_builders import await_signal, cancel, send


def test_a_parked_run_resumes_without_time_passing(home: Home) -> None:
    home.publish("order", await_signal())
    run_id = home.start("order")
    home.drain()
    waiting = home.run("order", run_id)
    assert waiting["status"] == "waiting"
    assert waiting["reason"].startswith('waiting for the signal "approved", until ')
    home.clock.at = START + 3 * DAY
    answer = send(home, "order", run_id, payload={"by": "u_123"})
    assert answer.status == 201
    assert set(answer.body) == {"id", "run_id", "signal", "created_at"}
    assert (answer.body["run_id"], answer.body["signal"]) == (run_id, "approved")
    home.drain()
    assert home.clock.at == START + 3 * DAY
    run = home.run("order", run_id)
    assert (run["status"], run["output"]) == ("succeeded", {"by": "u_123"})
    assert run["finished_at"] == answer.body["created_at"]
    assert run["steps"][0]["output"] == {"by": "u_123"}


def test_a_signal_of_another_name_leaves_the_run_parked(home: Home) -> None:
    home.publish("order", await_signal())
    run_id = home.start("order")
    home.drain()
    before = home.run("order", run_id)
    send(home, "order", run_id, "rejected")
    home.drain()
    assert home.run("order", run_id) == before


def test_a_signal_that_comes_while_a_step_is_in_flight_is_not_lost(
    home: Home, receiver: Receiver
) -> None:
    def answer(_: object) -> Reply:
        send(home, "order", run_id, payload="meanwhile")
        return Reply()

    receiver.answer = answer
    hook = {"key": "pay", "kind": "webhook", "target": receiver.url}
    home.publish("order", hook, await_signal())
    run_id = home.start("order")
    home.drain()
    run = home.run("order", run_id)
    assert (run["status"], run["output"]) == ("succeeded", "meanwhile")


@pytest.mark.parametrize(("over", "status"), [(0, 201), (1, 413)])
def test_a_payload_has_at_most_32_kib(home: Home, over: int, status: int) -> None:
    home.publish("order", await_signal())
    run_id = home.start("order")
    home.drain()
    payload = "x" * (MAX_SIGNAL_PAYLOAD - 2 + over)
    assert send(home, "order", run_id, payload=payload).status == status
    home.drain()
    if over:
        assert home.run("order", run_id)["status"] == "waiting"
    else:
        assert home.run("order", run_id)["output"] == payload


@pytest.mark.parametrize("name", ["", "Approved", "-a", "a b", "x" * 65])
def test_a_malformed_name_is_refused(home: Home, name: str) -> None:
    home.publish("order", await_signal())
    answer = send(home, "order", home.start("order"), name)
    assert (answer.status, answer.body["code"]) == (400, "invalid_request")


def test_a_waiting_run_can_be_cancelled(home: Home) -> None:
    home.publish("order", await_signal())
    run_id = home.start("order")
    home.drain()
    assert cancel(home, "order", run_id).status == 200
    home.clock.at += 8 * DAY
    home.drain()
    run = home.run("order", run_id)
    assert (run["status"], run["steps"][0]["status"]) == ("cancelled", "cancelled")
