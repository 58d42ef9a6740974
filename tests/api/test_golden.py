"""The very bytes that the API answers. A missing golden file fails; write it by hand or from the
failure's text, and read it before it is committed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from stepwell_engine.core.run.attempt import Failed, Succeeded
from stepwell_engine.service.projects.identity import Role
from tests.api.events import event
from tests.api.home import Answer, Home

FOLDER = Path(__file__).parent.parent / "golden" / "api"

CHARGE = {
    "key": "charge",
    "kind": "webhook",
    "target": "https://pay.example.com/charge",
    "payload": {"amount": 4900, "currency": "eur"},
    "secret": "a-signing-secret",
    "max_attempts": 5,
    "timeout_seconds": 10,
    "compensate": {"kind": "webhook", "target": "https://pay.example.com/refund"},
}
PROVISION = {
    "key": "provision",
    "kind": "sql",
    "target": "update accounts set active = true where id = 42",
    "max_attempts": 2,
}
COOL_OFF = {"key": "cool_off", "kind": "sleep", "sleep_for": "30m"}
NOTIFY = {"key": "notify", "kind": "enqueue", "target": "emails", "payload": {"to": "ü"}}
STEPS = [CHARGE, PROVISION, COOL_OFF, NOTIFY]
APPROVE = {"key": "approve", "kind": "wait_for_signal", "signal": "approved"}
NOTIFY_ALL = {
    "key": "notify_all",
    "kind": "fanout",
    "children": [
        {"key": "email", "kind": "enqueue", "target": "emails"},
        {
            "key": "crm",
            "kind": "webhook",
            "target": "https://crm.example.com/hooks/order",
            "max_attempts": 1,
        },
    ],
}
NOTIFIED = {"key": "notified", "kind": "join"}
FULFIL = {"key": "fulfil", "kind": "subworkflow", "target": "fulfilment"}
ORDERS = "/workflows/orders"


def published(home: Home) -> Answer:
    return home.call("PUT", ORDERS, {"steps": STEPS})


def started(home: Home) -> Answer:
    published(home)
    body = {"input": {"order_id": 42}, "idempotency_key": "order-42"}
    return home.call("POST", f"{ORDERS}/runs", body)


def workflow(home: Home) -> Answer:
    published(home)
    return home.call("GET", ORDERS)


def workflows(home: Home) -> Answer:
    published(home)
    home.publish("refunds", COOL_OFF)
    return home.call("GET", "/workflows", query={"limit": "1"})


def validated(home: Home) -> Answer:
    return home.call("PUT", ORDERS, {"steps": STEPS}, {"validate": "true"})


def run_sleeping(home: Home) -> Answer:
    home.outcomes = [Succeeded(b'{"delivered":true}'), Succeeded(b'{"rows_affected":1}')]
    run_id = started(home).body["id"]
    home.turn(run_id)
    return home.call("GET", f"{ORDERS}/runs/{run_id}")


def run_retrying(home: Home) -> Answer:
    home.outcomes = [Succeeded(b'{"delivered":true}'), Failed("relation does not exist")]
    run_id = started(home).body["id"]
    home.turn(run_id)
    return home.call("GET", f"{ORDERS}/runs/{run_id}")


def run_failed(home: Home) -> Answer:
    home.outcomes = [
        Succeeded(b'{"delivered":true}'),
        Failed("no database", "unknown_resource", retryable=False),
    ]
    run_id = started(home).body["id"]
    home.turn(run_id)
    return home.call("GET", f"{ORDERS}/runs/{run_id}")


def run_succeeded(home: Home) -> Answer:
    home.publish("refunds", PROVISION)
    run_id = home.start("refunds")
    home.turn(run_id)
    return home.call("GET", f"/workflows/refunds/runs/{run_id}")


def run_waiting(home: Home) -> Answer:
    home.publish("orders", APPROVE)
    run_id = home.start()
    home.turn(run_id)
    return home.call("GET", f"{ORDERS}/runs/{run_id}")


def signalled(home: Home) -> Answer:
    run_id = run_waiting(home).body["id"]
    body = {"signal": "approved", "payload": {"by": "u_123"}, "idempotency_key": "approval-42"}
    return home.call("POST", f"{ORDERS}/runs/{run_id}/signals", body)


def run_compensated(home: Home) -> Answer:
    home.publish("orders", CHARGE, NOTIFY_ALL, NOTIFIED)
    home.outcomes = [
        Succeeded(b'{"delivered":true}'),
        Succeeded(b'{"msg_id":7}'),
        Failed("answered 500"),
    ]
    run_id = home.start()
    home.turn(run_id)
    return home.call("GET", f"{ORDERS}/runs/{run_id}")


def run_of_parent(home: Home) -> Answer:
    home.publish("orders", FULFIL)
    home.publish("fulfilment", PROVISION)
    run_id = home.start()
    home.turn(run_id)
    (child,) = home.call("GET", "/workflows/fulfilment/runs").body["items"]
    home.turn(child["id"])
    home.turn(run_id)
    return home.call("GET", f"{ORDERS}/runs/{run_id}")


def run_of_child(home: Home) -> Answer:
    child = run_of_parent(home).body["steps"][0]["output"]
    return home.call("GET", f"/workflows/fulfilment/runs/{child}")


def run_cancelled(home: Home) -> Answer:
    run_id = started(home).body["id"]
    return home.call("POST", f"{ORDERS}/runs/{run_id}/cancel")


def runs(home: Home) -> Answer:
    run_failed(home)
    return home.call("GET", f"{ORDERS}/runs")


def steps(home: Home) -> Answer:
    run_id = started(home).body["id"]
    return home.call("GET", f"{ORDERS}/runs/{run_id}/steps", query={"limit": "1"})


def queue(home: Home) -> Answer:
    return home.call("PUT", "/queues/emails", {})


def function(home: Home) -> Answer:
    return home.call("PUT", "/functions/reindex", {"url": "https://fn.example.com/reindex"})


def database(home: Home) -> Answer:
    return home.call("PUT", "/database", {"dsn": "postgresql://shop:secret@db.example.com/shop"})


def received(home: Home) -> Answer:
    queue(home)
    home.call("POST", "/queues/emails/messages", {"body": {"to": "ü"}})
    return home.call("POST", "/queues/emails/messages/receive", {"max": 10})


def invalid_definition(home: Home) -> Answer:
    return home.call("PUT", ORDERS, {"steps": [{"key": "nap", "kind": "sleep"}, {"key": "x"}]})


def invalid_request(home: Home) -> Answer:
    published(home)
    return home.call("POST", f"{ORDERS}/runs", {"inputs": {}, "test": "yes"})


def unauthenticated(home: Home) -> Answer:
    return home.send(event("GET", "/v1/projects/demo/workflows"))


def forbidden(home: Home) -> Answer:
    return home.call("PUT", "/queues/emails", {}, role=Role.DEVELOPER)


def not_found(home: Home) -> Answer:
    return home.call("GET", ORDERS)


def method_not_allowed(home: Home) -> Answer:
    return home.call("DELETE", ORDERS)


def run_finished(home: Home) -> Answer:
    run_id = run_succeeded(home).body["id"]
    return home.call("POST", f"/workflows/refunds/runs/{run_id}/cancel")


def health(home: Home) -> Answer:
    return home.send(event("GET", "/v1/health"))


CASES: list[Callable[[Home], Answer]] = [
    published,
    started,
    workflow,
    workflows,
    validated,
    run_sleeping,
    run_retrying,
    run_failed,
    run_succeeded,
    run_waiting,
    signalled,
    run_compensated,
    run_of_parent,
    run_of_child,
    run_cancelled,
    runs,
    steps,
    queue,
    function,
    database,
    received,
    invalid_definition,
    invalid_request,
    unauthenticated,
    forbidden,
    not_found,
    method_not_allowed,
    run_finished,
    health,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_answer_is_the_golden_one(home: Home, case: Callable[[Home], Answer]) -> None:
    answer = case(home)
    assert answer.text == json.dumps(answer.body, ensure_ascii=False, separators=(",", ":"))
    shown = {"status": answer.status, "headers": answer.headers, "body": answer.body}
    written = json.dumps(shown, ensure_ascii=False, indent=2) + "\n"
    file = FOLDER / f"{case.__name__}.json"
    assert file.is_file(), f"{file} is missing; it would be:\n{written}"
    assert written == file.read_text(encoding="utf-8")


def test_every_golden_file_has_its_case() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == {case.__name__ for case in CASES}
