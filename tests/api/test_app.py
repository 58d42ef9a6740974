"""Routing, errors nobody foresaw, threads, and what importing the API costs."""

import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from stepwell_engine import limits
from stepwell_engine.api.routes import ROUTES
from stepwell_engine.api.routing import Route
from stepwell_engine.service.projects.identity import Role
from tests.api.events import event
from tests.api.home import PROJECT, Answer, Home, refused


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1",
        "/v2/health",
        "/v1/health/",
        "/v1//health",
        "//v1/health",
        "/v1/health%0A",
        "/v1/healthx",
        "/v1/openapiXjson",
        f"{PROJECT}//workflows",
        f"{PROJECT}/workflows/",
        f"{PROJECT}/workflows/a/b",
        f"{PROJECT}/workflows/a%2Fb",
        f"{PROJECT}/workflows/../queues",
        "/v1/projects//workflows",
    ],
)
def test_an_unknown_path_is_404(home: Home, path: str) -> None:
    answer = home.send(event("GET", path, token=home.tokens[Role.OWNER]))
    assert answer.status == 404
    assert "/v1/openapi.json" in refused(answer, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/v1/health", "GET"),
        ("HEAD", "/v1/health", "GET"),
        ("OPTIONS", f"{PROJECT}/workflows/orders", "GET, PATCH, PUT"),
        ("DELETE", f"{PROJECT}/workflows/orders", "GET, PATCH, PUT"),
        ("PUT", f"{PROJECT}/workflows/orders/runs", "GET, POST"),
        ("get", f"{PROJECT}/queues/q/messages/receive", "POST"),
    ],
)
def test_a_wrong_method_is_405_and_says_which_are_right(
    home: Home, method: str, path: str, allowed: str
) -> None:
    answer = home.send(event(method, path))
    assert (answer.status, answer.headers["allow"]) == (405, allowed)
    assert allowed in refused(answer, "method_not_allowed")


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_no_route_takes_a_query_parameter_that_it_does_not_know(home: Home, route: Route) -> None:
    path = re.sub(r"<\w+>", "demo", route.path)
    token = home.tokens[Role.OWNER]
    answer = home.send(event(route.method, path, token=token, query={"x": ""}))
    message = refused(answer, "invalid_request")
    takes = "none are allowed" if route.query is None else "allowed are "
    assert message.startswith(f"?x is an unknown query parameter: {takes}")
    assert answer.body["errors"] == [{"where": "?x", "message": message}]


@pytest.mark.parametrize("suffix", ["", "/versions/1", "/runs", "/runs/x", "/runs/x/steps"])
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "POST"])
def test_a_part_of_a_path_that_is_longer_than_any_name_reaches_no_store(
    home: Home, monkeypatch: pytest.MonkeyPatch, method: str, suffix: str
) -> None:
    name = "n" * (limits.MAX_PATH_PART + 1)
    for store in (home.versions, home.resources, home.runs, home.queues):
        for function in [one for one in vars(type(store)) if not one.startswith("_")]:
            monkeypatch.setattr(store, function, _short_only(getattr(store, function)))
    answer = home.call(method, f"/workflows/{name}{suffix}")
    if answer.status != 405:
        assert refused(answer, "invalid_request") == (
            "a name, id or number in the path has at most 200 characters, "
            f'but "{name[:60]}…" has 201'
        )
    answer = home.call(method, f"/workflows/a{suffix}", project=f"/v1/projects/{name}")
    if answer.status != 405:
        assert "there is no project" in refused(answer, "not_found")


def test_a_part_of_a_path_may_have_200_characters(home: Home) -> None:
    name = "n" * limits.MAX_PATH_PART
    assert "there is no workflow" in refused(home.call("GET", f"/workflows/{name}"), "not_found")


def test_a_receipt_is_as_long_as_its_queue_makes_it(home: Home) -> None:
    home.call("PUT", "/queues/emails")
    answer = home.call("DELETE", f"/queues/emails/messages/{'a' * 2_000}")
    assert "has this receipt" in refused(answer, "not_found")


def _short_only(function: Callable[..., object]) -> Callable[..., object]:
    def called(*given: object) -> object:
        assert all(len(one) <= limits.MAX_PATH_PART for one in given if isinstance(one, str))
        return function(*given)

    return called


@pytest.mark.parametrize("ref", ["Demo", "demo%00", "%F0%9F%98%80", "a" * 3_000, "demo%20"])
def test_an_odd_project_is_not_found(home: Home, ref: str) -> None:
    answer = home.send(event("GET", f"/v1/projects/{ref}/workflows", token=home.tokens[Role.OWNER]))
    assert "there is no project" in refused(answer, "not_found")


def test_a_named_stage_is_no_part_of_the_path(home: Home) -> None:
    assert home.send(event("GET", "/v1/health", stage="prod")).body == {"status": "ok"}


def test_a_path_that_was_not_decoded_is_decoded(home: Home) -> None:
    request = event("GET", "/v1/health")
    request["rawPath"] = "/v1/%68ealth"
    assert home.send(request).status == 200


@pytest.mark.parametrize("slash", ["%2F", "%2f"])
def test_a_slash_in_a_name_does_not_part_the_path(home: Home, slash: str) -> None:
    def ask(path: str) -> Answer:
        request = event("GET", "/", token=home.tokens[Role.OWNER])
        request["rawPath"] = path
        return home.send(request)

    assert ask("/v1/projects/demo/queues").status == 200
    assert "%2Fqueues" in refused(ask(f"/v1/projects/demo{slash}queues"), "not_found")
    text = refused(ask(f"/v1/projects/demo/queues/a{slash}b"), "not_found")
    assert 'there is no queue "a/b"' in text
    text = refused(ask("/v1/projects/demo/queues/a%252Fb"), "not_found")
    assert 'there is no queue "a%2Fb"' in text


def test_what_nobody_foresaw_is_logged_and_not_shown(
    home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("password hunter2")

    monkeypatch.setattr(home.versions, "list", broken)
    with caplog.at_level(logging.ERROR):
        answer = home.call("GET", "/workflows")
    assert answer.status == 500
    refused(answer, "internal")
    assert answer.body["request_id"] == "request-1"
    assert "hunter2" not in answer.text
    (record,) = caplog.records
    assert "request-1" in record.getMessage()
    assert record.exc_info is not None
    assert "hunter2" in str(record.exc_info[1])


def test_threads_answer_their_own_requests(home: Home) -> None:
    names = [f"w{at}" for at in range(8)]
    for name in names:
        home.publish(name)
    wrong: list[str] = []
    together = threading.Barrier(len(names))

    def ask(name: str) -> None:
        together.wait()
        for _ in range(50):
            shown = home.call("GET", f"/workflows/{name}").body["name"]
            if shown != name:
                wrong.append(shown)

    threads = [threading.Thread(target=ask, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_api_imports_with_an_empty_environment_and_little_else() -> None:
    code = (
        "import sys, stepwell_engine.api.app\n"
        "heavy = ['boto3', 'botocore.session', 'aws_xray_sdk', 'stepwell_engine.api.openapi',"
        " 'aws_lambda_powertools.utilities.parser',"
        " 'aws_lambda_powertools.event_handler.openapi.params']\n"
        "sys.exit(', '.join(name for name in heavy if name in sys.modules) or 0)"
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
