"""An attempt that takes longer than it may is a failed attempt."""

import threading

from tests.scenarios.homes import Home
from tests.scenarios.receiver import Receiver, Reply


def test_a_receiver_that_does_not_answer_costs_an_attempt(home: Home, receiver: Receiver) -> None:
    over = threading.Event()

    def answer(_: object) -> Reply:
        if len(receiver.calls) == 1:
            over.wait()
        return Reply(200)

    receiver.answer = answer
    step = {"key": "pay", "kind": "webhook", "target": receiver.url, "timeout_seconds": 1}
    home.publish("order", step)
    run_id = home.start("order")
    home.drain()
    over.set()
    first = home.step("order", run_id, "pay")
    assert (first["status"], first["attempt"], first["code"]) == ("retrying", 1, "timeout")
    assert "timed out after 1 s" in first["error"]
    run = home.finish("order", run_id)
    assert run["status"] == "succeeded"
    assert home.step("order", run_id, "pay")["attempt"] == 2
    assert [call.headers["webhook-id"] for call in receiver.calls] == [f"{run_id}:pay"] * 2
