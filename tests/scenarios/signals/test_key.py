"""A signal sent again with its idempotency key is the same signal, for ever."""

from concurrent.futures import ThreadPoolExecutor

from tests.scenarios.homes import Home
from tests.scenarios.step_builders import await_signal, cancel, send


def test_a_repeated_key_delivers_nothing_more(home: Home) -> None:
    home.publish("order", await_signal(key="first"), await_signal(key="second"))
    run_id = home.start("order")
    first = send(home, "order", run_id, payload=1, idempotency_key="approval-42")
    home.clock.at += 1_000
    again = send(home, "order", run_id, payload=2, idempotency_key="approval-42")
    assert (again.status, again.body) == (201, first.body)
    home.drain()
    consumed = send(home, "order", run_id, payload=3, idempotency_key="approval-42")
    assert consumed.body == first.body
    home.drain()
    run = home.run("order", run_id)
    assert (run["status"], run["cursor"]) == ("waiting", 1)
    assert run["steps"][0]["output"] == 1

    send(home, "order", run_id, payload=4, idempotency_key="approval-43")
    home.drain()
    assert home.run("order", run_id)["output"] == 4


def test_a_key_is_remembered_when_its_run_has_ended(home: Home) -> None:
    home.publish("order", await_signal())
    run_id = home.start("order")
    first = send(home, "order", run_id, idempotency_key="k")
    assert home.finish("order", run_id)["status"] == "succeeded"
    again = send(home, "order", run_id, idempotency_key="k")
    assert (again.status, again.body) == (201, first.body)
    assert send(home, "order", run_id, idempotency_key="other").status == 409


def test_a_key_belongs_to_its_run(home: Home) -> None:
    home.publish("order", await_signal())
    runs = [home.start("order") for _ in range(2)]
    sent = {send(home, "order", run_id, idempotency_key="k").body["id"] for run_id in runs}
    assert len(sent) == 2
    for run_id in runs:
        assert home.finish("order", run_id)["status"] == "succeeded"


def test_many_deliveries_at_once_with_one_key_are_one(home: Home) -> None:
    home.publish("order", await_signal(key="first"), await_signal(key="second"))
    run_id = home.start("order")
    home.drain()
    with ThreadPoolExecutor(8) as threads:
        answers = list(
            threads.map(
                lambda n: send(home, "order", run_id, payload=n, idempotency_key="k"), range(16)
            )
        )
    assert len({answer.body["id"] for answer in answers}) == 1
    home.drain()
    assert home.run("order", run_id)["cursor"] == 1
    assert cancel(home, "order", run_id).status == 200
