"""A step that fails is tried again after 2, 4, 8 … seconds, and costs nothing in between."""

import itertools

from tests.scenarios.homes import START, Home
from tests.scenarios.receiver import Receiver, Reply


def test_a_step_that_fails_twice_succeeds_at_its_third_attempt(
    home: Home, receiver: Receiver
) -> None:
    times: list[int] = []

    def answer(_: object) -> Reply:
        times.append(home.clock.now())
        return Reply(503, b"busy") if len(times) < 3 else Reply(204)

    receiver.answer = answer
    home.publish("charge", {"key": "pay", "kind": "webhook", "target": receiver.url})
    run_id = home.start("charge")
    home.drain()
    waiting = home.run("charge", run_id)
    assert waiting["status"] == "pending"
    assert "answered 503: busy" in waiting["last_error"]
    assert "retrying step pay" in waiting["reason"]
    (step,) = waiting["steps"]
    assert (step["status"], step["attempt"], step["max_attempts"]) == ("retrying", 1, 3)

    run = home.finish("charge", run_id)
    assert run["status"] == "succeeded"
    assert run["last_error"] is None
    (step,) = run["steps"]
    assert (step["status"], step["attempt"]) == ("succeeded", 3)
    assert step["output"] == {"delivered": True, "status": 204}
    assert times == [START, START + 2_000, START + 6_000]


def test_every_attempt_carries_the_same_id(home: Home, receiver: Receiver) -> None:
    receiver.script(Reply(500), Reply(500), Reply(200))
    home.publish("charge", {"key": "pay", "kind": "webhook", "target": receiver.url})
    run_id = home.start("charge")
    home.finish("charge", run_id)
    assert [call.headers["webhook-id"] for call in receiver.calls] == [f"{run_id}:pay"] * 3
    assert [call.headers["idempotency-key"] for call in receiver.calls] == [f"{run_id}:pay"] * 3


def test_the_pause_doubles_up_to_an_hour(home: Home, receiver: Receiver) -> None:
    times: list[int] = []

    def answer(_: object) -> Reply:
        times.append(home.clock.now())
        return Reply(500)

    receiver.answer = answer
    step = {"key": "pay", "kind": "webhook", "target": receiver.url, "max_attempts": 15}
    home.publish("charge", step)
    run = home.finish("charge", home.start("charge"))
    assert run["status"] == "failed"
    pauses = [(after - before) // 1_000 for before, after in itertools.pairwise(times)]
    assert pauses == [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600, 3600]
