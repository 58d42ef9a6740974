"""An order runs through all five kinds: charge, reserve, provision, cool off, notify."""

import base64
import hashlib
import hmac
import json

from tests.scenarios.homes import Home, JsonObject
from tests.scenarios.receiver import Call, Receiver, Reply

SECRET = "a-signing-secret"


def order(receiver: Receiver) -> list[JsonObject]:
    return [
        {
            "key": "charge",
            "kind": "webhook",
            "target": f"{receiver.url}/charge",
            "payload": {"amount": 4900, "currency": "eur"},
            "secret": SECRET,
            "max_attempts": 5,
            "timeout_seconds": 10,
        },
        {"key": "reserve", "kind": "function", "target": "reserve", "payload": {"sku": "lamp"}},
        {
            "key": "provision",
            "kind": "sql",
            "target": "update accounts set active = true where id = 42",
        },
        {"key": "cool_off", "kind": "sleep", "sleep_for": "30m"},
        {
            "key": "notify",
            "kind": "enqueue",
            "target": "emails",
            "payload": {"template": "welcome"},
        },
    ]


def prepare(home: Home, receiver: Receiver) -> None:
    """The resources, and a table with one account."""
    home.ok("PUT", "/queues/emails", {})
    home.ok("PUT", "/functions/reserve", {"url": f"{receiver.url}/reserve"})
    home.use_database()
    home.publish(
        "setup",
        sql("create", "create table accounts (id int primary key, active boolean)"),
        sql("insert", "insert into accounts values (42, false)"),
    )
    assert home.finish("setup", home.start("setup"))["status"] == "succeeded"


def sql(key: str, statement: str) -> JsonObject:
    return {"key": key, "kind": "sql", "target": statement}


def account(home: Home) -> object:
    home.publish("look", sql("look", "select id, active from accounts"))
    return home.finish("look", home.start("look"))["output"]["rows"]


def is_signed(call: Call) -> bool:
    """As a receiver checks it, by the Standard Webhooks specification."""
    parts = (call.headers["webhook-id"], call.headers["webhook-timestamp"], call.raw.decode())
    digest = hmac.new(SECRET.encode(), ".".join(parts).encode(), hashlib.sha256).digest()
    return call.headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"


def test_an_order_runs_through_all_five_kinds(home: Home, receiver: Receiver) -> None:
    receiver.answer = lambda call: Reply(
        200, json.dumps({"reserved": 1}).encode() if call.path == "/reserve" else b""
    )
    prepare(home, receiver)
    home.publish("order", *order(receiver))
    began = home.clock.at
    run_id = home.start("order", input={"order_id": 42}, idempotency_key="order-42")
    home.drain()
    half = home.run("order", run_id)
    assert (half["status"], half["cursor"]) == ("sleeping", 3)
    assert account(home) == [{"id": 42, "active": True}]
    assert home.messages("emails") == []

    run = home.finish("order", run_id)
    assert began + 30 * 60_000 <= home.clock.at < began + 30 * 60_000 + home.grain
    assert (run["status"], run["input"], run["last_error"]) == ("succeeded", {"order_id": 42}, None)
    outputs = {step["key"]: step.get("output") for step in run["steps"]}
    assert outputs == {
        "charge": {"delivered": True, "status": 200},
        "reserve": {"reserved": 1},
        "provision": {"rows_affected": 1},
        "cool_off": None,
        "notify": run["output"],
    }
    assert [run["output"]] == [{"msg_id": sent} for sent in home.sent_ids("emails")]
    assert {step["attempt"] for step in run["steps"]} == {1}
    assert home.messages("emails") == [{"template": "welcome"}]

    (charged,) = receiver.at("/charge")
    assert charged.body == {"amount": 4900, "currency": "eur"}
    assert charged.headers["webhook-id"] == f"{run_id}:charge"
    assert charged.headers["webhook-timestamp"] == str(began // 1_000)
    assert is_signed(charged)
    (reserved,) = receiver.at("/reserve")
    assert reserved.body["payload"] == {"sku": "lamp"}
    assert reserved.headers["idempotency-key"] == f"{run_id}:reserve"


def test_an_error_of_the_database_is_reported_in_its_words(home: Home) -> None:
    home.use_database()
    home.publish("order", {**sql("provision", "update nothing set a = 1"), "max_attempts": 1})
    run = home.finish("order", home.start("order"))
    assert run["status"] == "failed"
    assert run["last_error"] == 'ERROR: relation "nothing" does not exist (SQLSTATE 42P01)'


def test_the_secret_of_a_step_is_not_shown(home: Home, receiver: Receiver) -> None:
    home.publish("order", *order(receiver))
    shown = home.ok("GET", "/workflows/order")
    assert shown["steps"][0]["secret_set"] is True
    assert SECRET not in json.dumps(shown)
