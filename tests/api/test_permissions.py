"""Who may call which route."""

import hashlib
from typing import Literal

import pytest

from stepwell_engine.api.routes import ROUTES
from stepwell_engine.api.routing import Route
from stepwell_engine.ports import Grant
from stepwell_engine.service.projects.identity import Role
from tests.api.events import event
from tests.api.home import SQL, Answer, Home, refused

MEMBERS = set(Role)
DEVELOPERS = {Role.OWNER, Role.ADMIN, Role.DEVELOPER}
ADMINISTRATORS = {Role.OWNER, Role.ADMIN}

# Every route that needs a token, and who may call it. A new route must be entered here.
TABLE = {
    ("GET", "/workflows"): MEMBERS,
    ("PUT", "/workflows/orders"): DEVELOPERS,
    ("GET", "/workflows/orders"): MEMBERS,
    ("PATCH", "/workflows/orders"): DEVELOPERS,
    ("GET", "/workflows/orders/versions/1"): MEMBERS,
    ("POST", "/workflows/orders/runs"): DEVELOPERS,
    ("GET", "/workflows/orders/runs"): MEMBERS,
    ("GET", "/workflows/orders/runs/RUN"): MEMBERS,
    ("GET", "/workflows/orders/runs/RUN/steps"): MEMBERS,
    ("POST", "/workflows/orders/runs/RUN/cancel"): DEVELOPERS,
    ("POST", "/workflows/orders/runs/RUN/signals"): DEVELOPERS,
    ("GET", "/queues"): MEMBERS,
    ("PUT", "/queues/emails"): ADMINISTRATORS,
    ("GET", "/queues/emails"): MEMBERS,
    ("DELETE", "/queues/emails"): ADMINISTRATORS,
    ("GET", "/functions"): MEMBERS,
    ("PUT", "/functions/f"): ADMINISTRATORS,
    ("GET", "/functions/f"): MEMBERS,
    ("DELETE", "/functions/f"): ADMINISTRATORS,
    ("PUT", "/database"): ADMINISTRATORS,
    ("GET", "/database"): MEMBERS,
    ("DELETE", "/database"): ADMINISTRATORS,
    ("GET", "/queues/emails/messages"): MEMBERS,
    ("POST", "/queues/emails/messages"): DEVELOPERS,
    ("POST", "/queues/emails/messages/receive"): DEVELOPERS,
    ("DELETE", "/queues/emails/messages/RECEIPT"): DEVELOPERS,
}
BODIES: dict[tuple[str, str], object] = {
    ("PUT", "/workflows/orders"): {"steps": [SQL]},
    ("PATCH", "/workflows/orders"): {"enabled": True},
    ("PUT", "/functions/f"): {"python": "a:b"},
    ("POST", "/queues/emails/messages"): {"body": 1},
    ("POST", "/workflows/orders/runs/RUN/signals"): {"signal": "approved"},
}
ROUTE_IDS = [f"{method} {path}" for method, path in TABLE]


@pytest.fixture
def furnished(home: Home) -> Home:
    """A project in which every route of the table has something to work on."""
    home.publish()
    home.call("PUT", "/queues/emails")
    home.call("PUT", "/functions/f", {"python": "a:b"})
    home.call("PUT", "/database")
    return home


def call(home: Home, route: tuple[str, str], role: Role, project: str = "demo") -> Answer:
    method, path = route
    run_id = home.start()
    home.call("POST", "/queues/emails/messages", {"body": 1})
    (message,) = home.call("POST", "/queues/emails/messages/receive").body["items"]
    path = path.replace("RUN", run_id).replace("RECEIPT", message["receipt"])
    return home.call(method, path, BODIES.get(route), role=role, project=f"/v1/projects/{project}")


def route_of(method: str, path: str) -> Route:
    found: Route = next(
        one
        for one in ROUTES
        if one.method == method and one.pattern.match(f"/v1/projects/demo{path}")
    )
    return found


def test_the_table_has_every_route() -> None:
    assert {id(route_of(*entry)) for entry in TABLE} == {
        id(route) for route in ROUTES if route.permission is not None
    }


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("route", TABLE, ids=ROUTE_IDS)
def test_a_role_may_do_what_the_table_says(
    furnished: Home, route: tuple[str, str], role: Role
) -> None:
    answer = call(furnished, route, role)
    if role in TABLE[route]:
        assert answer.status < 300, answer.text
    else:
        assert answer.status == 403
        detail = refused(answer, "forbidden")
        assert f'"{role}"' in detail
        assert "owner, admin" in detail


@pytest.mark.parametrize("kind", ["publishable", "secret"])
@pytest.mark.parametrize("route", TABLE, ids=ROUTE_IDS)
@pytest.mark.parametrize("project", ["demo", "elsewhere"])
def test_project_keys_are_refused_everywhere(
    furnished: Home, route: tuple[str, str], kind: Literal["publishable", "secret"], project: str
) -> None:
    token = {"publishable": "swp_key", "secret": "sws_key"}[kind]
    digest = hashlib.sha256(token.encode()).hexdigest()
    furnished.grants.put(Grant(digest, kind, "org", project="demo"))
    method, path = route
    answer = furnished.send(event(method, f"/v1/projects/{project}{path}", token=token))
    assert answer.status == 403
    assert "project keys are not accepted" in refused(answer, "forbidden")


@pytest.mark.parametrize("role", [Role.OWNER, Role.VIEWER])
@pytest.mark.parametrize("route", TABLE, ids=ROUTE_IDS)
def test_a_project_of_another_organization_is_not_found(
    furnished: Home, route: tuple[str, str], role: Role
) -> None:
    furnished.services.identity.create_project("rival", "theirs")
    theirs = call(furnished, route, role, "theirs")
    none = call(furnished, route, role, "nothing")
    assert theirs.status == none.status == 404
    assert theirs.text.replace("theirs", "nothing") == none.text


@pytest.mark.parametrize("route", TABLE, ids=ROUTE_IDS)
@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Basic abc", "swt_x", "Bearer ä", "Bearer a b", "Bearer a,b"],
)
def test_no_token_is_401(home: Home, route: tuple[str, str], header: str | None) -> None:
    method, path = route
    headers = {} if header is None else {"authorization": header}
    answer = home.send(event(method, f"/v1/projects/demo{path}", headers=headers))
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    refused(answer, "unauthenticated")


def test_an_unknown_token_is_401(home: Home) -> None:
    answer = home.send(event("GET", "/v1/projects/demo/workflows", token="swt_unknown"))
    assert "not known" in refused(answer, "unauthenticated")


def test_a_refusal_comes_before_the_body_is_read(home: Home) -> None:
    answer = home.send(event("POST", "/v1/projects/demo/workflows/a/runs", "{", token="swt_no"))
    assert answer.status == 401


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer  "])
def test_the_scheme_is_read_in_any_case(home: Home, scheme: str) -> None:
    headers = {"Authorization": f"{scheme} {home.tokens[Role.VIEWER]}"}
    answer = home.send(event("GET", "/v1/projects/demo/workflows", headers=headers))
    assert answer.status == 200


@pytest.mark.parametrize("path", ["/v1/health", "/v1/openapi.json"])
def test_public_routes_need_no_token(home: Home, path: str) -> None:
    assert home.send(event("GET", path)).status == 200
    assert home.send(event("GET", path, token="nonsense")).status == 200
