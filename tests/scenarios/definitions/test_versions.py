"""A run keeps the version that it started on."""

from tests.scenarios.homes import Home

NAP = {"key": "nap", "kind": "sleep", "sleep_for": "10m"}


def send(text: str) -> dict[str, object]:
    return {"key": "say", "kind": "enqueue", "target": "emails", "payload": text}


def test_a_run_in_flight_is_not_changed_by_a_new_version(home: Home) -> None:
    home.ok("PUT", "/queues/emails", {})
    assert home.publish("order", NAP, send("old")) == 1
    before = home.start("order")
    home.drain()
    assert home.publish("order", send("new")) == 2
    after = home.start("order")
    assert home.finish("order", after)["version"] == 2
    run = home.finish("order", before)
    assert (run["version"], run["status"]) == (1, "succeeded")
    assert [step["key"] for step in run["steps"]] == ["nap", "say"]
    assert home.messages("emails") == ["new", "old"]


def test_every_version_stays_readable(home: Home) -> None:
    home.publish("order", send("one"))
    home.publish("order", send("two"))
    texts = [
        home.ok("GET", f"/workflows/order/versions/{version}")["steps"][0]["payload"]
        for version in (1, 2)
    ]
    assert texts == ["one", "two"]
    assert home.ok("GET", "/workflows/order")["version"] == 2


def test_a_version_that_is_published_disabled_is_passed_over(home: Home) -> None:
    home.ok("PUT", "/queues/emails", {})
    home.publish("order", send("one"))
    home.ok("PUT", "/workflows/order", {"enabled": False, "steps": [send("two")]})
    assert home.finish("order", home.start("order"))["version"] == 1
