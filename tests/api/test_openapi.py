"""The OpenAPI document says what the API does."""

import re
from typing import Any

import pytest

from stepwell_engine import limits
from stepwell_engine.api.problems import ProblemView
from stepwell_engine.api.routes import ROUTES
from stepwell_engine.errors import PROBLEM_STATUS
from tests.api.events import event
from tests.api.home import Home
from tests.api.shapes import document

OPERATIONS = [
    (path, method, operation)
    for path, item in document()["paths"].items()
    for method, operation in item.items()
]


def test_it_is_served_to_anybody(home: Home) -> None:
    answer = home.send(event("GET", "/v1/openapi.json"))
    assert answer.body == document()
    assert answer.body["openapi"].startswith("3.1")


def test_every_route_is_an_operation_with_a_name_of_its_own() -> None:
    assert len(OPERATIONS) == len(ROUTES)
    names = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][a-zA-Z]+", name) for name in names)


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS)
def test_an_operation_is_described(path: str, method: str, operation: Any) -> None:
    assert operation["summary"]
    assert operation["tags"][0] in {tag["name"] for tag in document()["tags"]}
    in_path = {one["name"] for one in operation.get("parameters", []) if one["in"] == "path"}
    assert in_path == set(re.findall(r"{(\w+)}", path))
    for parameter in operation.get("parameters", []):
        assert parameter["description"]
    public = path in ("/v1/health", "/v1/openapi.json")
    assert operation.get("security") == ([] if public else None)
    assert ("401" in operation["responses"]) is not public
    assert ("requestBody" in operation) is (method in ("put", "patch", "post"))


def test_every_reference_leads_somewhere_and_every_schema_is_used() -> None:
    found = set(re.findall(r"'#/components/schemas/(\w+)'", str(document())))
    assert found == set(document()["components"]["schemas"])


def test_the_document_asks_for_a_bearer_token() -> None:
    assert document()["security"] == [{"bearer": []}]
    scheme = document()["components"]["securitySchemes"]["bearer"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")


def test_errors_are_problem_documents() -> None:
    for _, _, operation in OPERATIONS:
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                schema = response["content"]["application/problem+json"]["schema"]
                assert schema == {"$ref": f"#/components/schemas/{ProblemView.__name__}"}
                codes = response["description"].removeprefix("Problem: ").rstrip(".").split(", ")
                assert {PROBLEM_STATUS[code] for code in codes} == {int(status)}


def test_limits_are_documented() -> None:
    schemas = document()["components"]["schemas"]
    assert schemas["StartRun"]["properties"]["idempotency_key"]["maxLength"] == 200
    queue = schemas["PutQueue"]["properties"]
    assert queue["visibility_timeout"]["maximum"] == limits.MAX_VISIBILITY
    assert queue["max_receives"]["maximum"] == limits.MAX_RECEIVES
    assert schemas["DefinitionBody"]["properties"]["steps"]["maxItems"] == limits.MAX_STEPS


@pytest.mark.parametrize(
    "name",
    [
        "StartRun",
        "SendSignal",
        "SetEnabled",
        "PutQueue",
        "PutFunction",
        "DefinitionBody",
        "SleepStep",
    ],
)
def test_bodies_take_no_unknown_fields(name: str) -> None:
    assert document()["components"]["schemas"][name]["additionalProperties"] is False
