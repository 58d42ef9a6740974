"""The messages of queues over the API."""

from dataclasses import replace
from typing import Any

import pytest

from stepwell_engine import limits
from tests.api.home import PROJECT, Home, refused

MESSAGES = "/queues/emails/messages"


@pytest.fixture
def queue(home: Home) -> Home:
    home.call("PUT", "/queues/emails", {"visibility_timeout": 30, "max_receives": 2})
    return home


def receive(home: Home, **body: int) -> list[Any]:
    answer = home.call("POST", f"{MESSAGES}/receive", body)
    assert answer.status == 200
    items: list[Any] = answer.body["items"]
    return items


def test_a_message_is_sent_received_and_deleted(queue: Home) -> None:
    sent = queue.call("POST", MESSAGES, {"body": {"order": 42}})
    assert (sent.status, sent.body) == (201, {"id": 1})
    (message,) = receive(queue)
    assert (message["id"], message["body"], message["receives"]) == (1, {"order": 42}, 1)
    assert message["visible_at"] == "2023-11-14T22:13:50.000Z"
    answer = queue.call("DELETE", f"{MESSAGES}/{message['receipt']}")
    assert (answer.status, answer.text) == (204, "")
    assert queue.call("GET", MESSAGES).body["items"] == []


@pytest.mark.parametrize("body", [None, 0, "", "text", [], {"a": [1]}])
def test_any_json_value_is_a_message(queue: Home, body: object) -> None:
    queue.call("POST", MESSAGES, {"body": body})
    assert receive(queue)[0]["body"] == body


def test_a_message_has_at_most_256_kib(queue: Home) -> None:
    fits = "x" * (limits.MAX_MESSAGE - 2)
    assert queue.call("POST", MESSAGES, {"body": fits}).status == 201
    answer = queue.call("POST", MESSAGES, {"body": fits + "x"})
    assert answer.status == 413
    assert "262,144" in refused(answer, "payload_too_large")
    assert len(queue.call("GET", MESSAGES).body["items"]) == 1


@pytest.mark.parametrize(("most", "status"), [(0, 400), (1, 200), (10, 200), (11, 400)])
def test_1_to_10_messages_are_received_at_once(queue: Home, most: int, status: int) -> None:
    for at in range(12):
        queue.call("POST", MESSAGES, {"body": at})
    answer = queue.call("POST", f"{MESSAGES}/receive", {"max": most})
    assert answer.status == status
    if status == 200:
        assert [one["body"] for one in answer.body["items"]] == list(range(most))
    else:
        assert "$.max must be at " in refused(answer, "invalid_request")


def test_one_message_is_received_unless_told_otherwise(queue: Home) -> None:
    for at in range(2):
        queue.call("POST", MESSAGES, {"body": at})
    assert len(queue.call("POST", f"{MESSAGES}/receive").body["items"]) == 1


def test_listing_receives_nothing_and_shows_no_receipts(queue: Home) -> None:
    for at in range(3):
        queue.call("POST", MESSAGES, {"body": at})
    first = queue.call("GET", MESSAGES, query={"limit": "2"}).body
    rest = queue.call("GET", MESSAGES, query={"cursor": first["next_cursor"]}).body
    shown = first["items"] + rest["items"]
    assert [(one["body"], one["receives"]) for one in shown] == [(0, 0), (1, 0), (2, 0)]
    assert not any("receipt" in one for one in shown)
    assert rest["next_cursor"] is None


def test_large_messages_make_the_pages_shorter(queue: Home) -> None:
    for _ in range(10):
        queue.call("POST", MESSAGES, {"body": "x" * (limits.MAX_MESSAGE - 2)})
    first = queue.call("GET", MESSAGES).body
    assert len(first["items"]) == limits.MAX_PAGE_BYTES // limits.MAX_MESSAGE
    rest = queue.call("GET", MESSAGES, query={"cursor": first["next_cursor"]}).body
    assert [one["id"] for one in rest["items"]] == [9, 10]


def test_a_message_received_too_often_is_in_the_archive(queue: Home) -> None:
    queue.call("POST", MESSAGES, {"body": "poison"})
    for _ in range(3):
        receive(queue)
        queue.clock.sleep(31_000)
    assert queue.call("GET", MESSAGES).body["items"] == []
    archived = queue.call("GET", MESSAGES, query={"archived": "true"}).body["items"]
    assert [(one["body"], one["receives"]) for one in archived] == [("poison", 2)]


def test_only_the_newest_receipt_deletes(queue: Home) -> None:
    queue.call("POST", MESSAGES, {"body": 1})
    (old,) = receive(queue)
    queue.clock.sleep(31_000)
    (new,) = receive(queue)
    refused(queue.call("DELETE", f"{MESSAGES}/{old['receipt']}"), "not_found")
    assert queue.call("DELETE", f"{MESSAGES}/{new['receipt']}").status == 204
    refused(queue.call("DELETE", f"{MESSAGES}/{new['receipt']}"), "not_found")


@pytest.mark.parametrize("added", ["%3D", "%20", "%0A", "A"])
def test_a_receipt_has_one_form(queue: Home, added: str) -> None:
    queue.call("POST", MESSAGES, {"body": 1})
    (taken,) = receive(queue)
    refused(queue.call("DELETE", f"{MESSAGES}/{taken['receipt']}{added}"), "not_found")
    assert queue.call("DELETE", f"{MESSAGES}/{taken['receipt']}").status == 204


@pytest.mark.parametrize(
    ("name", "project"), [("other", PROJECT), ("emails", "/v1/projects/second")]
)
def test_a_receipt_deletes_in_its_own_queue_alone(queue: Home, name: str, project: str) -> None:
    queue.services.identity.create_project("org", "second")
    messages = f"/queues/{name}/messages"
    queue.call("PUT", f"/queues/{name}", project=project)
    queue.call("POST", MESSAGES, {"body": "first"})
    queue.call("POST", messages, {"body": "of another queue"}, project=project)
    (taken,) = receive(queue)
    queue.call("POST", f"{messages}/receive", project=project)
    path = f"{messages}/{taken['receipt']}"
    refused(queue.call("DELETE", path, project=project), "not_found")
    assert len(queue.call("GET", messages, project=project).body["items"]) == 1
    assert queue.call("DELETE", f"{MESSAGES}/{taken['receipt']}").status == 204


@pytest.mark.parametrize("receipt", ["x", "!!", "a" * 999, "%00", "MS4x", "%C3%A4"])
def test_a_receipt_that_was_never_given_is_not_found(queue: Home, receipt: str) -> None:
    queue.call("POST", MESSAGES, {"body": 1})
    assert "has this receipt" in refused(queue.call("DELETE", f"{MESSAGES}/{receipt}"), "not_found")


def test_receipts_are_safe_in_a_path(queue: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = "AQEB/wJ+n==?#%2F"
    removed: list[str] = []

    def delete_message(project: str, queue: str, receipt: str) -> bool:
        removed.append(receipt)
        return True

    queue.call("POST", MESSAGES, {"body": 1})
    (message,) = queue.queues.receive("demo", "emails", 1, queue.clock.now())
    monkeypatch.setattr(queue.queues, "receive", lambda *_: [replace(message, receipt=odd)])
    monkeypatch.setattr(queue.queues, "delete_message", delete_message)
    (shown,) = receive(queue)
    assert queue.call("DELETE", f"{MESSAGES}/{shown['receipt']}").status == 204
    assert removed == [odd]


def test_what_others_sent_is_shown_as_text_if_it_is_not_json(queue: Home) -> None:
    queue.queues.send("demo", "emails", b"hello \xff", queue.clock.now())
    assert queue.call("GET", MESSAGES).body["items"][0]["body"] == "hello \ufffd"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("POST", "", {"body": 1}),
        ("POST", "/receive", None),
    ],
)
def test_an_unknown_queue_is_not_found(home: Home, method: str, path: str, body: object) -> None:
    answer = home.call(method, MESSAGES + path, body)
    assert refused(answer, "not_found") == 'there is no queue "emails" in this project'


def test_a_queue_that_was_dropped_is_not_found(queue: Home) -> None:
    queue.call("POST", MESSAGES, {"body": 1})
    (taken,) = receive(queue)
    queue.call("DELETE", "/queues/emails")
    answer = queue.call("DELETE", f"{MESSAGES}/{taken['receipt']}")
    assert refused(answer, "not_found") == 'there is no queue "emails" in this project'


@pytest.mark.parametrize("body", [{}, {"boddy": 1}])
def test_a_message_needs_a_body(queue: Home, body: object) -> None:
    assert "$.body is missing" in refused(queue.call("POST", MESSAGES, body), "invalid_request")
