"""Publishing, reading and disabling workflows over the API."""

import json

import pytest

from stepwell_engine import limits
from tests.api.home import SQL, Home, refused

HOOK = {
    "key": "charge",
    "kind": "webhook",
    "target": "https://pay.example.com/charge",
    "payload": {"amount": 4900},
    "secret": "a-signing-secret",
}


def test_a_put_publishes_the_next_version(home: Home) -> None:
    for version in (1, 2):
        answer = home.call("PUT", "/workflows/orders", {"steps": [SQL]})
        assert answer.status == 201
        assert answer.body == {"name": "orders", "version": version, "enabled": True}


def test_a_version_can_be_published_disabled(home: Home) -> None:
    answer = home.call("PUT", "/workflows/orders", {"enabled": False, "steps": [SQL]})
    assert answer.body == {"name": "orders", "version": 1, "enabled": False}
    started = home.call("POST", "/workflows/orders/runs", {})
    assert started.status == 409
    assert "enable it" in refused(started, "workflow_disabled")


def test_a_disabled_version_leaves_an_older_enabled_one_in_force(home: Home) -> None:
    home.publish()
    home.call("PUT", "/workflows/orders", {"enabled": False, "steps": [SQL]})
    assert home.show(home.start())["version"] == 1


def test_validation_alone_stores_nothing(home: Home) -> None:
    answer = home.call("PUT", "/workflows/orders", {"steps": [SQL]}, {"validate": "true"})
    assert (answer.status, answer.body) == (
        200,
        {"name": "orders", "valid": True, "step_count": 1},
    )
    assert home.call("GET", "/workflows/orders").status == 404


@pytest.mark.parametrize("query", [{}, {"validate": "true"}])
def test_every_violation_is_named_with_its_step(home: Home, query: dict[str, str]) -> None:
    body = {"steps": [{"key": "A", "kind": "sql"}, {"key": "nap", "kind": "sleep"}], "x": 1}
    answer = home.call("PUT", "/workflows/orders", body, query)
    assert answer.status == 400
    detail = refused(answer, "invalid_definition")
    violations = answer.body["violations"]
    assert [one["step"] for one in violations] == [None, "steps[0]", "steps[0]", "nap"]
    assert detail == f"{violations[0]['message']} (and 3 more, see violations)"
    assert home.call("GET", "/workflows/orders").status == 404


@pytest.mark.parametrize(
    "name", ["Orders", "-a", "a" * 65, "a.b", "%C3%A4", "a%0A", "a%20b", "%25"]
)
def test_a_malformed_name_is_refused(home: Home, name: str) -> None:
    answer = home.call("PUT", f"/workflows/{name}", {"steps": [SQL]})
    assert answer.status == 400
    assert "the workflow's name must be" in refused(answer, "invalid_request")


@pytest.mark.parametrize("name", ["app", "sync", "usage"])
def test_reserved_names_are_refused(home: Home, name: str) -> None:
    answer = home.call("PUT", f"/workflows/{name}", {"steps": [SQL]})
    assert "app, sync, usage" in refused(answer, "invalid_request")


def test_the_longest_name_is_taken_and_percent_encoding_is_decoded(home: Home) -> None:
    home.publish("a" * 64)
    assert home.call("PUT", "/workflows/order%2Dpipeline", {"steps": [SQL]}).status == 201
    assert home.call("GET", "/workflows/order-pipeline").status == 200


def test_a_read_hides_secrets_and_storage_has_them_sealed(home: Home) -> None:
    compensation = {
        "kind": "webhook",
        "target": "https://pay.example.com/undo",
        "secret": "other-secret",
    }
    home.publish("orders", {**HOOK, "compensate": compensation})
    answer = home.call("GET", "/workflows/orders")
    step = answer.body["steps"][0]
    assert step["secret_set"] is True
    assert step["compensate"]["secret_set"] is True
    stored = home.versions.get("demo", "orders", 1)
    assert stored is not None
    document = json.loads(stored.document)
    assert document["steps"][0]["secret"] == f"sealed(demo):{'a-signing-secret'[::-1]}"
    for secret in ("a-signing-secret", "other-secret"):
        assert secret not in answer.text
        assert secret.encode() not in stored.document


def test_old_versions_can_be_read(home: Home) -> None:
    home.publish()
    home.publish("orders", {**SQL, "target": "select 2"})
    old = home.call("GET", "/workflows/orders/versions/1").body
    assert (old["version"], old["steps"]) == (1, [SQL])
    assert home.call("GET", "/workflows/orders").body["version"] == 2


@pytest.mark.parametrize("number", ["2", "10", str(2**31 - 1)])
def test_a_version_that_is_not_there_is_not_found(home: Home, number: str) -> None:
    home.publish()
    answer = home.call("GET", f"/workflows/orders/versions/{number}")
    message = refused(answer, "not_found")
    assert message == f'there is no version {number} of a workflow "orders"'


@pytest.mark.parametrize(
    "number",
    [
        *("0", "-1", "x", "1.0", "9" * 30, str(2**31), "%D9%A1", "1%0A", "%201", "1_0"),
        *("01", "+1", "%2B1", "-0", "00", "1e0", "0x1", "0" * 20 + "1", "9" * 200),
    ],
)
def test_a_version_has_one_form(home: Home, number: str) -> None:
    home.publish()
    answer = home.call("GET", f"/workflows/orders/versions/{number}")
    message = refused(answer, "not_found")
    assert message.startswith('there is no version "')
    right = "versions are 1, 2, 3 and so on, without a sign or leading zeros"
    assert message.endswith(f'" of a workflow "orders": {right}')


def test_the_list_shows_the_newest_versions_by_name_page_by_page(home: Home) -> None:
    for name in ("b", "a", "c", "a"):
        home.publish(name)
    first = home.call("GET", "/workflows", query={"limit": "2"}).body
    assert [(one["name"], one["version"]) for one in first["items"]] == [("a", 2), ("b", 1)]
    rest = home.call("GET", "/workflows", query={"cursor": first["next_cursor"]}).body
    assert [one["name"] for one in rest["items"]] == ["c"]
    assert rest["next_cursor"] is None
    assert first["items"][0]["step_count"] == 1


def test_a_page_that_ends_the_list_has_no_cursor(home: Home) -> None:
    for name in ("a", "b"):
        home.publish(name)
    assert home.call("GET", "/workflows", query={"limit": "2"}).body["next_cursor"] is None


def test_disabling_stops_every_version_and_enabling_reverses_it(home: Home) -> None:
    home.publish()
    home.publish()
    answer = home.call("PATCH", "/workflows/orders", {"enabled": False})
    assert (answer.status, answer.text) == (204, "")
    refused(home.call("POST", "/workflows/orders/runs", {}), "workflow_disabled")
    assert home.call("GET", "/workflows/orders/versions/1").body["enabled"] is False
    home.call("PATCH", "/workflows/orders", {"enabled": True})
    assert home.call("POST", "/workflows/orders/runs", {}).status == 201


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "$.enabled is missing"),
        ({"enabled": "yes"}, '$.enabled must be true or false, not "yes"'),
        ({"enabled": 1}, "$.enabled must be true or false, not 1"),
        ({"enabled": True, "x": 1}, "$.x is an unknown field: allowed are enabled"),
    ],
)
def test_a_patch_takes_enabled_alone(home: Home, body: object, message: str) -> None:
    home.publish()
    answer = home.call("PATCH", "/workflows/orders", body)
    assert refused(answer, "invalid_request") == message
    assert answer.body["errors"] == [{"where": message.split(maxsplit=1)[0], "message": message}]


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("PATCH", ""), ("GET", "/versions/1"), ("GET", "/runs"), ("POST", "/runs")],
)
def test_an_unknown_workflow_is_not_found(home: Home, method: str, path: str) -> None:
    body = {"enabled": True} if method == "PATCH" else None
    answer = home.call(method, f"/workflows/ghost{path}", body)
    assert answer.status == 404
    refused(answer, "not_found")


def test_a_definition_has_at_most_256_kib(home: Home) -> None:
    payloads = [60_000, 60_000, 60_000, 60_000]
    steps = [
        {"key": f"k{at}", "kind": "enqueue", "target": "q", "payload": "x" * size}
        for at, size in enumerate(payloads)
    ]
    missing = limits.MAX_DEFINITION - len(json.dumps({"steps": steps}, separators=(",", ":")))
    last = {"key": "last", "kind": "enqueue", "target": "q", "payload": ""}
    missing -= len(json.dumps(last, separators=(",", ":"))) + 1
    last["payload"] = "x" * missing
    assert home.call("PUT", "/workflows/orders", {"steps": [*steps, last]}).status == 201
    last["payload"] = "x" * (missing + 1)
    answer = home.call("PUT", "/workflows/orders", {"steps": [*steps, last]})
    assert "262,144" in refused(answer, "invalid_definition")


def test_an_unknown_query_parameter_publishes_nothing(home: Home) -> None:
    answer = home.call("PUT", "/workflows/orders", {"steps": [SQL]}, {"validat": "true"})
    message = refused(answer, "invalid_request")
    assert message == "?validat is an unknown query parameter: allowed are validate"
    assert home.call("GET", "/workflows/orders").status == 404


def test_names_of_two_projects_are_apart(home: Home) -> None:
    home.publish()
    home.services.identity.create_project("org", "other")
    answer = home.call("GET", "/workflows", project="/v1/projects/other")
    assert answer.body == {"items": [], "next_cursor": None}
