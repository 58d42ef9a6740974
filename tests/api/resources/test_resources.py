"""Registering queues, functions and the database over the API."""

from typing import Any

import pytest

from stepwell_engine import limits
from tests.api.home import Home, refused

CREATED = "2023-11-14T22:13:20.000Z"
LAMBDA = "arn:aws:lambda:eu-west-1:123456789012:function:reserve"
CLUSTER = "arn:aws:rds:eu-west-1:123456789012:cluster:orders"
SECRET = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:orders-a1b2c3"
DSN = "postgresql://shop:hunter2@db.example.com:5432/shop"


# --- queues -----------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [None, {}])
def test_a_queue_has_defaults(home: Home, body: object) -> None:
    answer = home.call("PUT", "/queues/emails", body)
    shown = {
        "name": "emails",
        "visibility_timeout": 30,
        "max_receives": 5,
        "created_at": CREATED,
    }
    assert (answer.status, answer.body) == (201, shown)
    assert home.call("GET", "/queues/emails").body == shown


def test_settings_of_a_queue_change_and_its_messages_stay(home: Home) -> None:
    home.call("PUT", "/queues/emails")
    home.call("POST", "/queues/emails/messages", {"body": 1})
    home.clock.sleep(1_000)
    changed = home.call("PUT", "/queues/emails", {"visibility_timeout": 60}).body
    assert (changed["visibility_timeout"], changed["created_at"]) == (60, CREATED)
    home.call("POST", "/queues/emails/messages/receive")
    (message,) = home.call("GET", "/queues/emails/messages").body["items"]
    assert message["visible_at"] == "2023-11-14T22:14:21.000Z"


@pytest.mark.parametrize(
    ("field", "most"),
    [("visibility_timeout", limits.MAX_VISIBILITY), ("max_receives", limits.MAX_RECEIVES)],
)
def test_the_bounds_of_a_queues_settings(home: Home, field: str, most: int) -> None:
    for value in (1, most):
        assert home.call("PUT", "/queues/emails", {field: value}).body[field] == value
    for value in (0, most + 1):
        answer = home.call("PUT", "/queues/emails", {field: value})
        message = refused(answer, "invalid_request")
        assert message == f"{field} must be a whole number from 1 to {most}, not {value}"
    assert home.call("GET", "/queues/emails").body[field] == most


@pytest.mark.parametrize("name", ["Emails", "1a", "a-b", "a" * 49, "a%0A", "stepwell_own"])
def test_a_malformed_queue_name_is_refused(home: Home, name: str) -> None:
    answer = home.call("PUT", f"/queues/{name}")
    assert answer.status == 400
    refused(answer, "invalid_request")


def test_the_longest_queue_name_is_taken(home: Home) -> None:
    assert home.call("PUT", f"/queues/{'a' * 48}").status == 201


def test_a_deleted_queue_is_gone_with_its_messages(home: Home) -> None:
    home.call("PUT", "/queues/emails")
    home.call("POST", "/queues/emails/messages", {"body": 1})
    answer = home.call("DELETE", "/queues/emails")
    assert (answer.status, answer.text) == (204, "")
    assert home.call("GET", "/queues/emails").status == 404
    assert home.call("DELETE", "/queues/emails").status == 404
    home.call("PUT", "/queues/emails")
    assert home.call("GET", "/queues/emails/messages").body["items"] == []


# --- functions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        {"url": "https://fn.example.com/reindex"},
        {"lambda": LAMBDA},
        {"lambda": f"{LAMBDA}:live"},
        {"command": ["python", "-m", "reindex"]},
        {"python": "shop.stock:reindex"},
    ],
)
def test_a_function_is_a_url_a_lambda_a_command_or_a_callable(
    home: Home, target: dict[str, Any]
) -> None:
    answer = home.call("PUT", "/functions/reindex-order", target)
    shown = {"name": "reindex-order", **target, "created_at": CREATED}
    assert (answer.status, answer.body) == (201, shown)
    assert home.call("GET", "/functions/reindex-order").body == shown


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "exactly one of url, lambda, command, python"),
        (
            {"url": "https://a.example", "python": "a:b"},
            "exactly one of url, lambda, command, python",
        ),
        ({"url": "ftp://a.example"}, "url must be an http or https URL"),
        ({"url": "https://u:p@a.example"}, "without a user name or password"),
        ({"url": None}, "url must be"),
        ({"url": "https://a.example/" + "x" * limits.MAX_TARGET}, "at most 8,192 bytes"),
        ({"command": []}, "command must be a list of 1 to 64"),
        ({"command": ["a"] * 65}, "command must be a list of 1 to 64"),
        ({"command": "ls"}, "command must be a list"),
        ({"command": ["", "x"]}, "command must be a list"),
        ({"command": ["a", 1]}, "command must be a list"),
        ({"command": ["a", "b\0"]}, "NUL"),
        ({"command": ["x" * limits.MAX_TARGET]}, "at most 8,192"),
        ({"python": "reindex"}, "module:callable"),
        ({"python": "a:b\n"}, "module:callable"),
        ({"python": "a" * limits.MAX_TARGET + ":b"}, "at most 8,192"),
        ({"lambda": "reserve"}, "lambda must be the ARN of a function"),
        ({"lambda": f"{LAMBDA}:a:b"}, "lambda must be the ARN of a function"),
        ({"lambda": f"{LAMBDA}\n"}, "lambda must be the ARN of a function"),
        ({"lambda": CLUSTER}, "lambda must be the ARN of a function"),
        ({"php": "arn"}, "$.php is an unknown field: allowed are url, lambda, command, python"),
    ],
)
def test_a_bad_function_is_refused(home: Home, body: object, message: str) -> None:
    answer = home.call("PUT", "/functions/f", body)
    assert message in refused(answer, "invalid_request")
    assert home.call("GET", "/functions/f").status == 404


def test_the_bounds_of_a_function_are_taken(home: Home) -> None:
    url = "https://a.example/"
    url += "x" * (limits.MAX_TARGET - len(url))
    python = "a" * (limits.MAX_TARGET - 2) + ":b"
    commands = [["a"] * limits.MAX_COMMAND, ["x" * (limits.MAX_TARGET - 4)]]
    for body in ({"url": url}, {"python": python}, *({"command": one} for one in commands)):
        assert home.call("PUT", "/functions/f", body).status == 201


@pytest.mark.parametrize("name", ["F", "-f", "f" * 65])
def test_a_malformed_function_name_is_refused(home: Home, name: str) -> None:
    answer = home.call("PUT", f"/functions/{name}", {"python": "a:b"})
    assert "the function's name must be" in refused(answer, "invalid_request")


def test_a_deleted_function_is_gone(home: Home) -> None:
    home.call("PUT", "/functions/f", {"python": "a:b"})
    assert home.call("DELETE", "/functions/f").status == 204
    assert home.call("GET", "/functions/f").status == 404
    assert home.call("DELETE", "/functions/f").status == 404


# --- lists ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "body"), [("queues", {}), ("functions", {"python": "a:b"})])
def test_resources_are_listed_by_name_page_by_page(home: Home, kind: str, body: object) -> None:
    for name in ("c", "a", "b"):
        home.call("PUT", f"/{kind}/{name}", body)
    first = home.call("GET", f"/{kind}", query={"limit": "2"}).body
    second = home.call("GET", f"/{kind}", query={"cursor": first["next_cursor"]}).body
    assert [one["name"] for one in first["items"] + second["items"]] == ["a", "b", "c"]
    assert second["next_cursor"] is None


def test_a_cursor_of_another_list_is_refused(home: Home) -> None:
    for name in ("a", "b"):
        home.call("PUT", f"/queues/{name}")
    cursor = home.call("GET", "/queues", query={"limit": "1"}).body["next_cursor"]
    answer = home.call("GET", "/functions", query={"cursor": cursor})
    assert "next_cursor of its previous page" in refused(answer, "invalid_request")


# --- the database -----------------------------------------------------------------------------


@pytest.mark.parametrize("body", [None, {}, {"embedded": True}, {"dsn": None}])
def test_the_embedded_database_is_the_default(home: Home, body: object) -> None:
    answer = home.call("PUT", "/database", body)
    assert (answer.status, answer.body) == (
        201,
        {"embedded": True, "secret_set": False, "created_at": CREATED},
    )


@pytest.mark.parametrize("body", [{"dsn": DSN}, {"dsn": DSN, "embedded": False}])
def test_a_dsn_is_kept_sealed_and_never_shown(home: Home, body: object) -> None:
    answer = home.call("PUT", "/database", body)
    read = home.call("GET", "/database")
    assert (
        answer.body
        == read.body
        == {
            "embedded": False,
            "secret_set": True,
            "created_at": CREATED,
        }
    )
    stored = home.resources.get("demo", "database", "database")
    assert stored is not None
    assert stored.sealed == f"sealed(demo):{DSN[::-1]}"
    assert b"hunter2" not in stored.config


@pytest.mark.parametrize("more", [{}, {"database": "orders"}])
def test_a_cluster_is_kept_with_its_arns(home: Home, more: dict[str, str]) -> None:
    body = {"cluster": CLUSTER, "secret": SECRET, **more}
    answer = home.call("PUT", "/database", body)
    assert answer.status == 201
    assert answer.body == home.call("GET", "/database").body
    assert answer.body == {"embedded": False, **body, "secret_set": False, "created_at": CREATED}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"cluster": CLUSTER}, "secret must be the ARN of the secret"),
        ({"secret": SECRET}, "cluster must be the ARN of an Aurora cluster"),
        ({"cluster": SECRET, "secret": SECRET}, "cluster must be the ARN of an Aurora cluster"),
        ({"cluster": CLUSTER, "secret": "hunter2"}, "secret must be the ARN of the secret"),
        ({"cluster": CLUSTER, "secret": SECRET, "database": "a b"}, "database must be the name"),
        ({"cluster": CLUSTER, "secret": SECRET, "database": "a" * 64}, "database must be the name"),
        ({"cluster": CLUSTER, "secret": SECRET, "dsn": DSN}, 'or "cluster" with "secret", one of'),
        ({"cluster": CLUSTER, "secret": SECRET, "embedded": True}, 'or "cluster" with "secret"'),
        ({"dsn": "mysql://u:hunter2@h/d"}, "dsn must be like postgresql://"),
        ({"dsn": "postgresql://u:hunter2@/d"}, "dsn must be like postgresql://"),
        ({"dsn": "postgresql://u:hunter2@h:x/d"}, "dsn must be like postgresql://"),
        ({"dsn": "postgresql://u:hunter2@h/d e"}, "without spaces"),
        ({"dsn": "postgresql://u:hunter2@h/" + "d" * limits.MAX_TARGET}, "at most 8,192"),
        ({"dsn": ["hunter2"]}, "$.dsn must be text, not a list"),
        ({"dsn": DSN, "embedded": True}, 'either a "dsn" or "embedded": true'),
        ({"embedded": False}, 'either a "dsn" or "embedded": true'),
    ],
)
def test_a_bad_database_is_refused_without_quoting_the_dsn(
    home: Home, body: object, message: str
) -> None:
    answer = home.call("PUT", "/database", body)
    assert message in refused(answer, "invalid_request")
    assert "hunter2" not in answer.text
    assert home.call("GET", "/database").status == 404


def test_the_longest_dsn_is_taken(home: Home) -> None:
    dsn = "postgres://h/"
    assert home.call("PUT", "/database", {"dsn": dsn.ljust(limits.MAX_TARGET, "d")}).status == 201


def test_a_deleted_database_is_forgotten(home: Home) -> None:
    home.call("PUT", "/database")
    assert home.call("DELETE", "/database").status == 204
    assert "no database yet" in refused(home.call("GET", "/database"), "not_found")
    assert home.call("DELETE", "/database").status == 404


@pytest.mark.parametrize("path", ["/queues/x", "/functions/x", "/database"])
def test_resources_of_two_projects_are_apart(home: Home, path: str) -> None:
    home.services.identity.create_project("org", "second")
    home.call("PUT", path, {"python": "a:b"} if "functions" in path else {})
    assert home.call("GET", path).status == 200
    assert home.call("GET", path, project="/v1/projects/second").status == 404
    assert home.call("DELETE", path, project="/v1/projects/second").status == 404
