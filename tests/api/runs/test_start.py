"""Starting runs over the API."""

import pytest

from stepwell_engine import limits
from tests.api.home import RUNS, Home, refused


@pytest.mark.parametrize("body", [None, {}, {"input": {}}, {"test": False}])
def test_a_start_needs_no_body(home: Home, body: object) -> None:
    home.publish()
    answer = home.call("POST", RUNS, body)
    assert answer.status == 201
    assert answer.body == {"id": answer.body["id"], "status": "pending"}
    assert home.show(answer.body["id"])["input"] == {}


@pytest.mark.parametrize("value", [None, 0, "x", [1, 2.5, None], {"a": {"b": "ä😀"}}, True])
def test_any_json_value_is_an_input(home: Home, value: object) -> None:
    home.publish()
    assert home.show(home.start(input=value))["input"] == value


def test_a_key_that_was_used_answers_with_its_run(home: Home) -> None:
    home.publish()
    first = home.call("POST", RUNS, {"input": 1, "idempotency_key": "order-42"})
    again = home.call("POST", RUNS, {"input": 2, "idempotency_key": "order-42"})
    assert (first.status, again.status) == (201, 200)
    assert first.body == again.body
    shown = home.show(first.body["id"])
    assert (shown["input"], shown["idempotency_key"]) == (1, "order-42")


@pytest.mark.parametrize(("length", "status"), [(0, 400), (1, 201), (200, 201), (201, 400)])
def test_a_key_has_1_to_200_characters(home: Home, length: int, status: int) -> None:
    home.publish()
    answer = home.call("POST", RUNS, {"idempotency_key": "ä" * length})
    assert answer.status == status
    if status == 400:
        assert "1 to 200 are allowed" in refused(answer, "invalid_request")


def test_an_input_has_at_most_256_kib_of_compact_json(home: Home) -> None:
    home.publish()
    fits = "x" * (limits.MAX_INPUT - 2)
    assert home.show(home.start(input=fits))["input"] == fits
    answer = home.call("POST", RUNS, {"input": fits + "x"})
    assert answer.status == 413
    assert "262,144" in refused(answer, "payload_too_large")
    assert len(home.call("GET", RUNS).body["items"]) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"inputs": 1}, "$.inputs is an unknown field: allowed are input, idempotency_key, test"),
        ({"idempotency_key": 7}, "$.idempotency_key must be text, not 7"),
        ({"test": "true"}, '$.test must be true or false, not "true"'),
    ],
)
def test_a_start_takes_no_other_fields_and_types(home: Home, body: object, message: str) -> None:
    home.publish()
    assert refused(home.call("POST", RUNS, body), "invalid_request") == message


def test_all_violations_of_a_body_are_reported(home: Home) -> None:
    home.publish()
    answer = home.call("POST", RUNS, {"x": 1, "test": 1})
    refused(answer, "invalid_request")
    assert [one["where"] for one in answer.body["errors"]] == ["$.test", "$.x"]
