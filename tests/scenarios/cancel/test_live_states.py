"""A run can be cancelled in every live state, and never goes on."""

from stepwell_engine.limits import DAY
from tests.scenarios.homes import Answer, Home
from tests.scenarios.receiver import Receiver, Reply


def cancel(home: Home, run_id: str) -> Answer:
    return home.request("POST", f"/workflows/order/runs/{run_id}/cancel")


def cancelled(home: Home, run_id: str) -> dict[str, object]:
    """The run's detail, which a day later is still the same."""
    before = home.run("order", run_id)
    assert before["status"] == "cancelled"
    assert before["finished_at"] is not None
    assert before["reason"] is None
    home.clock.at += DAY
    home.drain()
    assert home.run("order", run_id) == before
    return before


def test_a_pending_run(home: Home, receiver: Receiver) -> None:
    home.publish("order", {"key": "pay", "kind": "webhook", "target": receiver.url})
    run_id = home.start("order")
    answer = cancel(home, run_id)
    assert (answer.status, answer.body) == (200, {"id": run_id, "status": "cancelled"})
    cancelled(home, run_id)
    assert receiver.calls == []


def test_a_run_whose_step_is_executing_keeps_that_steps_outcome(
    home: Home, receiver: Receiver
) -> None:
    statuses: list[object] = []

    def answer(_: object) -> Reply:
        statuses.append(home.run("order", run_id)["status"])
        statuses.append(cancel(home, run_id).status)
        statuses.append(home.run("order", run_id)["status"])
        return Reply(200)

    receiver.answer = answer
    home.ok("PUT", "/queues/emails", {})
    home.publish(
        "order",
        {"key": "pay", "kind": "webhook", "target": receiver.url},
        {"key": "tell", "kind": "enqueue", "target": "emails"},
    )
    run_id = home.start("order")
    home.drain()
    assert statuses == ["running", 200, "cancelled"]
    run = cancelled(home, run_id)
    assert run["steps"] == [
        {
            **home.step("order", run_id, "pay"),
            "status": "succeeded",
            "attempt": 1,
            "output": {"delivered": True, "status": 200},
        }
    ]
    assert len(receiver.calls) == 1
    assert home.messages("emails") == []


def test_a_run_whose_step_fails_while_it_is_cancelled_does_not_try_again(
    home: Home, receiver: Receiver
) -> None:
    def answer(_: object) -> Reply:
        cancel(home, run_id)
        return Reply(500, b"down")

    receiver.answer = answer
    home.publish("order", {"key": "pay", "kind": "webhook", "target": receiver.url})
    run_id = home.start("order")
    home.drain()
    cancelled(home, run_id)
    step = home.step("order", run_id, "pay")
    assert (step["status"], step["attempt"]) == ("failed", 1)
    assert "down" in step["error"]
    assert len(receiver.calls) == 1


def test_a_run_that_backs_off(home: Home, receiver: Receiver) -> None:
    receiver.script(Reply(500))
    home.publish("order", {"key": "pay", "kind": "webhook", "target": receiver.url})
    run_id = home.start("order")
    home.drain()
    assert home.step("order", run_id, "pay")["status"] == "retrying"
    cancel(home, run_id)
    cancelled(home, run_id)
    assert home.step("order", run_id, "pay")["status"] == "cancelled"
    assert len(receiver.calls) == 1


def test_a_sleeping_run(home: Home, receiver: Receiver) -> None:
    home.publish(
        "order",
        {"key": "nap", "kind": "sleep", "sleep_for": "1h"},
        {"key": "pay", "kind": "webhook", "target": receiver.url},
    )
    run_id = home.start("order")
    home.drain()
    assert home.run("order", run_id)["status"] == "sleeping"
    cancel(home, run_id)
    cancelled(home, run_id)
    assert home.step("order", run_id, "nap")["status"] == "cancelled"
    assert receiver.calls == []


def test_a_run_that_has_ended_cannot_be_cancelled(home: Home) -> None:
    home.publish("order", {"key": "nap", "kind": "sleep", "sleep_for": "1s"})
    run_id = home.start("order")
    home.finish("order", run_id)
    refused = cancel(home, run_id)
    assert (refused.status, refused.body["code"]) == (409, "run_finished")
    assert "succeeded" in refused.body["detail"]
    assert home.run("order", run_id)["status"] == "succeeded"


def test_a_cancelled_run_cannot_be_cancelled_again(home: Home) -> None:
    home.publish("order", {"key": "nap", "kind": "sleep", "sleep_for": "1s"})
    run_id = home.start("order")
    assert [cancel(home, run_id).status for _ in range(2)] == [200, 409]
