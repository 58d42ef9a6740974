"""A disabled workflow starts nothing; what runs already goes on."""

from tests.scenarios.homes import Home

NAP = {"key": "nap", "kind": "sleep", "sleep_for": "1m"}


def test_a_disabled_workflow_starts_nothing_until_it_is_enabled(home: Home) -> None:
    home.publish("order", NAP)
    home.publish("order", NAP)
    assert home.request("PATCH", "/workflows/order", {"enabled": False}).status == 204
    refused = home.request("POST", "/workflows/order/runs", {})
    assert (refused.status, refused.body["code"]) == (409, "workflow_disabled")
    assert home.ok("GET", "/workflows/order/runs")["items"] == []
    assert home.ok("GET", "/workflows/order")["enabled"] is False

    assert home.request("PATCH", "/workflows/order", {"enabled": True}).status == 204
    assert home.finish("order", home.start("order"))["version"] == 2


def test_a_run_in_flight_goes_on_under_a_disabled_workflow(home: Home) -> None:
    home.publish("order", NAP)
    run_id = home.start("order")
    home.drain()
    home.ok("PATCH", "/workflows/order", {"enabled": False})
    assert home.finish("order", run_id)["status"] == "succeeded"


def test_publishing_again_enables_the_name(home: Home) -> None:
    home.publish("order", NAP)
    home.ok("PATCH", "/workflows/order", {"enabled": False})
    home.publish("order", NAP)
    assert home.run("order", home.start("order"))["version"] == 2


def test_a_workflow_that_is_not_there_cannot_be_switched_or_started(home: Home) -> None:
    for method, path, body in (
        ("PATCH", "/workflows/none", {"enabled": False}),
        ("POST", "/workflows/none/runs", {}),
    ):
        refused = home.request(method, path, body)
        assert (refused.status, refused.body["code"]) == (404, "not_found")
