"""A definition may name what is not there yet; a step that needs it fails at once."""

import pytest

from tests.scenarios.homes import Home, JsonObject

STEPS = [
    {"kind": "enqueue", "target": "emails"},
    {"kind": "function", "target": "reserve"},
    {"kind": "sql", "target": "select 1"},
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: str(step["kind"]))
def test_a_missing_resource_fails_the_run_without_a_retry(home: Home, step: JsonObject) -> None:
    home.publish("order", {"key": "one", "max_attempts": 5, **step})
    run = home.finish("order", home.start("order"))
    assert run["status"] == "failed"
    (row,) = run["steps"]
    assert (row["status"], row["attempt"], row["code"]) == ("failed", 1, "unknown_resource")
    assert "register it with PUT /v1/projects/demo/" in run["last_error"]


def test_a_resource_that_comes_after_the_definition_is_found(home: Home) -> None:
    home.publish(
        "order",
        {"key": "nap", "kind": "sleep", "sleep_for": "1s"},
        {"key": "tell", "kind": "enqueue", "target": "emails"},
    )
    run_id = home.start("order")
    home.drain()
    home.ok("PUT", "/queues/emails", {})
    assert home.finish("order", run_id)["status"] == "succeeded"


def test_a_resource_that_was_dropped_is_missing(home: Home) -> None:
    home.ok("PUT", "/queues/emails", {})
    home.publish("order", {"key": "tell", "kind": "enqueue", "target": "emails"})
    home.ok("DELETE", "/queues/emails")
    run = home.finish("order", home.start("order"))
    assert run["steps"][0]["code"] == "unknown_resource"
