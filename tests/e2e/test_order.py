"""An order runs on the deployed template: charged, reserved, provisioned, cooled off, announced."""

import json
from collections import Counter
from dataclasses import dataclass

import psycopg
import pytest

from tests.e2e.data_api import DATABASE, DataApi
from tests.e2e.installation import RESERVE, Installation, JsonObject
from tests.scenarios.receiver import Receiver, Reply
from tests.scenarios.steps.test_order_pipeline import SECRET, is_signed

pytestmark = pytest.mark.e2e

COUNTS = {"StepsSucceeded": 4, "StepsFailed": 1}


@dataclass(frozen=True)
class Order:
    """An order that ran to its end, and what the executor had counted then."""

    run: JsonObject
    counted: Counter[str]

    def step(self, key: str) -> JsonObject:
        (found,) = (step for step in self.run["steps"] if step["key"] == key)
        step: JsonObject = found
        return step


@pytest.fixture(scope="module")
def order(installed: Installation, receiver: Receiver) -> Order:
    """An order: charged at the second attempt, reserved, provisioned, cooled off, notified."""
    receiver.script(Reply(500), Reply(200))
    installed.ok("PUT", "/queues/emails", {})
    installed.ok("PUT", "/functions/reserve", {"lambda": RESERVE})
    installed.ok("PUT", "/database", DATABASE)
    installed.publish("order", *steps(receiver))
    run_id = installed.start("order", input={"order_id": 42}, idempotency_key="order-42")
    run = installed.finish("order", run_id)
    installed.drain()
    return Order(run, installed.counted("executor", again=lambda: installed.hint(run_id), **COUNTS))


def steps(receiver: Receiver) -> list[JsonObject]:
    charge: JsonObject = {
        "key": "charge",
        "kind": "webhook",
        "target": f"{receiver.url}/charge",
        "payload": {"amount": 4900, "currency": "eur"},
        "secret": SECRET,
    }
    provision = "update accounts set active = true where id = 42"
    return [
        charge,
        {"key": "reserve", "kind": "function", "target": "reserve", "payload": {"sku": "lamp"}},
        {"key": "provision", "kind": "sql", "target": provision},
        {"key": "cool_off", "kind": "sleep", "sleep_for": "3s"},
        {"key": "notify", "kind": "enqueue", "target": "emails", "payload": {"to": "ada"}},
    ]


def test_an_order_runs_through_all_five_kinds(order: Order, database: DataApi) -> None:
    run = order.run
    assert (run["status"], run["last_error"], run["input"]) == ("succeeded", None, {"order_id": 42})
    assert [step["status"] for step in run["steps"]] == ["succeeded"] * 5
    assert order.step("charge")["output"] == {"delivered": True, "status": 200}
    key = f"{run['id']}:reserve"
    assert order.step("reserve")["output"] == {"reserved": "lamp", "key": key}
    assert order.step("provision")["output"] == {"rows_affected": 1}
    assert run["output"] == order.step("notify")["output"]
    with psycopg.connect(database.dsn) as connection:
        assert connection.execute("select * from accounts").fetchall() == [(42, True)]


def test_a_webhook_that_fails_is_sent_again(order: Order, receiver: Receiver) -> None:
    assert order.step("charge")["attempt"] == 2
    first, second = receiver.at("/charge")
    assert first.body == second.body == {"amount": 4900, "currency": "eur"}
    ids = [call.headers["webhook-id"] for call in (first, second)]
    assert ids == [f"{order.run['id']}:charge"] * 2
    assert is_signed(first)
    assert is_signed(second)


def test_the_metrics_count_its_steps(order: Order) -> None:
    assert {name: order.counted[name] for name in COUNTS} == COUNTS


def test_the_message_is_in_the_queue_of_the_user(order: Order, installed: Installation) -> None:
    sqs = installed.emulator.client("sqs")
    url = sqs.get_queue_url(QueueName="stepwell-dev-q-shop-emails")["QueueUrl"]
    (message,) = sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)["Messages"]
    assert json.loads(message["Body"]) == {"to": "ada"}
    assert order.run["output"] == {"msg_id": message["MessageId"]}
    (received,) = installed.ok("POST", "/queues/emails/messages/receive", {})["items"]
    assert received["body"] == {"to": "ada"}
    answer = installed.request("DELETE", f"/queues/emails/messages/{received['receipt']}")
    assert answer.status_code == 204, answer.text
    assert "Messages" not in sqs.receive_message(QueueUrl=url)


def test_the_same_key_starts_no_second_order(order: Order, installed: Installation) -> None:
    again = installed.request("POST", "/workflows/order/runs", {"idempotency_key": "order-42"})
    assert (again.status_code, again.json()["id"]) == (200, order.run["id"])
