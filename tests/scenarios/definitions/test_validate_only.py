"""`?validate=true` checks a definition and stores nothing."""

from tests.scenarios.homes import Home

NAP = {"key": "nap", "kind": "sleep", "sleep_for": "3s"}


def test_a_good_definition_is_called_valid_and_not_stored(home: Home) -> None:
    body = {"steps": [NAP]}
    answer = home.request("PUT", "/workflows/order", body, query={"validate": "true"})
    assert (answer.status, answer.body["valid"]) == (200, True)
    assert home.request("GET", "/workflows/order").status == 404
    assert home.ok("GET", "/workflows")["items"] == []
    assert home.publish("order", NAP) == 1


def test_a_bad_one_gets_every_violation_with_its_step(home: Home) -> None:
    home.publish("order", NAP)
    steps = [
        {"key": "nap", "kind": "sleep", "sleep_for": "31d"},
        {"key": "hook", "kind": "webhook", "target": "ftp://files"},
        {"key": "hook", "kind": "enqueue", "target": "Emails"},
    ]
    for query in ({"validate": "true"}, {}):
        answer = home.request("PUT", "/workflows/order", {"steps": steps}, query=query)
        assert (answer.status, answer.body["code"]) == (400, "invalid_definition")
        assert {one["step"] for one in answer.body["violations"]} == {"nap", "hook"}
        assert len(answer.body["violations"]) == 4
    assert home.ok("GET", "/workflows/order")["version"] == 1
