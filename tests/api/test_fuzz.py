"""Whatever is sent, the answer is a documented one, never a 500."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepwell_engine.api.routes import ROUTES
from stepwell_engine.service.paging import cursor, listing, to_url
from stepwell_engine.service.projects.identity import Role
from tests.api.events import event
from tests.api.home import SQL, Home
from tests.api.shapes import document

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
FIELDS = sorted(
    {
        name
        for schema in document()["components"]["schemas"].values()
        for name in schema.get("properties", {})
    }
)
OBJECTS = st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5), JSON, max_size=5)
STEPS = st.lists(OBJECTS | st.just(SQL) | JSON, max_size=3).map(lambda steps: {"steps": steps})
# json.dumps writes NaN and lone surrogates too: both must be refused, not stored.
BODIES = st.none() | st.text(max_size=40) | (OBJECTS | STEPS | JSON).map(json.dumps)
RECEIPT = to_url(listing("receipts", "demo", "emails") + "1.1")
SEGMENTS = st.sampled_from(["demo", "orders", "emails", "f", "1", RECEIPT]) | st.text(
    st.characters(exclude_characters="/"), min_size=1, max_size=12
)
TEXTS = st.text(max_size=20)
CURSORS = [
    cursor(listing("runs", "demo", "orders", None, None, None), "x"),
    cursor(listing("queue", "demo"), 1),
    cursor(listing("messages", "demo", "emails", False), "x"),
]
QUERIES = st.dictionaries(
    st.sampled_from(["cursor", "limit", "status", "wait", "validate", "archived"]) | TEXTS,
    st.sampled_from(["1", "true", "running", *CURSORS]) | TEXTS,
    max_size=3,
)
HEADERS = st.dictionaries(
    st.sampled_from(["authorization", "content-type", "accept-encoding"]) | TEXTS,
    st.sampled_from(["application/json", "gzip", "Bearer swt_x", ","]) | TEXTS,
    max_size=3,
)
MANY = settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])


def furnished() -> Home:
    home = Home()
    home.publish()
    home.call("PUT", "/queues/emails")
    home.call("PUT", "/functions/f", {"python": "a:b"})
    return home


HOME = furnished()


def check(home: Home, request: dict[str, Any]) -> None:
    """The answer is checked against the OpenAPI document on its way."""
    answer = home.send(request)
    assert answer.status < 500, (request, answer.text)


@MANY
@given(st.sampled_from(ROUTES), st.data(), BODIES, QUERIES)
def test_routes_take_any_body_path_and_query(
    route: Any, data: st.DataObject, body: str | None, query: dict[str, str]
) -> None:
    path = route.path
    for name in route.pattern.groupindex:
        segment = "demo" if name == "ref" else data.draw(SEGMENTS)
        path = path.replace(f"<{name}>", segment)
    request = event(route.method, "/", body, token=HOME.tokens[Role.OWNER], query=query)
    request["rawPath"] = request["requestContext"]["http"]["path"] = path
    check(HOME, request)


@MANY
@given(
    st.sampled_from(["GET", "PUT", "POST", "PATCH", "DELETE"]) | TEXTS,
    TEXTS,
    HEADERS,
    st.text(max_size=30),
    st.booleans(),
)
def test_any_request_is_answered(
    method: str, path: str, headers: dict[str, str], body: str, encoded: bool
) -> None:
    request = event(method, "/", body, headers=headers, encoded=encoded)
    request["rawPath"] = request["requestContext"]["http"]["path"] = f"/v1/{path}"
    check(HOME, request)


@MANY
@given(HEADERS, BODIES, st.booleans())
def test_any_headers_are_answered(headers: dict[str, str], body: str, encoded: bool) -> None:
    token = HOME.tokens[Role.OWNER]
    path = "/v1/projects/demo/workflows/orders/runs"
    check(HOME, event("POST", path, body, token=token, headers=headers, encoded=encoded))


@MANY
@given(JSON)
def test_an_input_comes_back_as_it_was_sent(value: object) -> None:
    path = "/v1/projects/demo/workflows/orders/runs"
    body = json.dumps({"input": value})
    answer = HOME.send(event("POST", path, body, token=HOME.tokens[Role.OWNER]))
    if answer.status == 201:
        shown = HOME.show(answer.body["id"])["input"]
        assert json.dumps(shown) == json.dumps(value)
    else:
        assert answer.status == 400
        assert any(word in body for word in ("NaN", "Infinity", "\\ud"))
