"""What a start takes, and what it refuses."""

import pytest

from stepwell_engine.limits import MAX_INPUT
from tests.scenarios.homes import Home

NAP = {"key": "nap", "kind": "sleep", "sleep_for": "1s"}


@pytest.fixture(autouse=True)
def workflow(home: Home) -> None:
    home.publish("order", NAP)


def test_both_fields_are_optional(home: Home) -> None:
    answer = home.request("POST", "/workflows/order/runs")
    assert (answer.status, answer.body["status"]) == (201, "pending")
    assert home.run("order", answer.body["id"])["input"] == {}


@pytest.mark.parametrize("value", [None, 0, "x", [1], {"a": {"b": None}}])
def test_the_input_is_any_json_value(home: Home, value: object) -> None:
    run_id = home.start("order", input=value)
    assert home.run("order", run_id)["input"] == value


@pytest.mark.parametrize(("over", "status"), [(0, 201), (1, 413)])
def test_the_input_has_at_most_256_kib(home: Home, over: int, status: int) -> None:
    body = {"input": "x" * (MAX_INPUT - 2 + over)}
    assert home.request("POST", "/workflows/order/runs", body).status == status


@pytest.mark.parametrize(("size", "status"), [(200, 201), (201, 400)])
def test_a_key_has_at_most_200_characters(home: Home, size: int, status: int) -> None:
    body = {"idempotency_key": "k" * size}
    assert home.request("POST", "/workflows/order/runs", body).status == status


def test_a_stranger_is_refused(home: Home) -> None:
    answer = home.request("POST", "/workflows/order/runs", token="swt_stranger")
    assert (answer.status, answer.body["code"]) == (401, "unauthenticated")
