"""Steps of the kind webhook, against a real receiver."""

import json

import pytest

from stepwell_engine import limits
from stepwell_engine.adapters.http.client import HttpClient
from stepwell_engine.adapters.http.transport import GuardedAdapter
from stepwell_engine.adapters.runners.webhook import WebhookRunner
from stepwell_engine.adapters.secrets.sealed import SealedSecrets
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import Failed
from stepwell_engine.core.values.signing import verify
from tests.adapters.attempts import NOW, StillClock, attempt, failure, output
from tests.adapters.conftest import names
from tests.adapters.receivers import Receiver, dripping, saying, scripted


@pytest.fixture
def runner(client: HttpClient, secrets: SealedSecrets) -> WebhookRunner:
    return WebhookRunner(client, secrets, StillClock())


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_any_2xx_delivers(runner: WebhookRunner, receiver: Receiver, status: int) -> None:
    receiver.status = status
    outcome = runner.run(attempt(Kind.WEBHOOK, receiver.url))
    assert output(outcome) == {"delivered": True, "status": status}


def test_every_attempt_carries_the_same_id_and_the_time(
    runner: WebhookRunner, receiver: Receiver
) -> None:
    for number in (1, 2):
        runner.run(attempt(Kind.WEBHOOK, receiver.url, number=number))
    for request in receiver.requests:
        assert request.body == b'{"amount":4900}'
        assert request.headers["content-type"] == "application/json"
        assert request.headers["user-agent"].startswith("Stepwell/")
        assert request.headers["webhook-id"] == "0190-run:charge"
        assert request.headers["idempotency-key"] == "0190-run:charge"
        assert request.headers["webhook-timestamp"] == str(NOW // 1000)
        assert "webhook-signature" not in request.headers


@pytest.mark.parametrize("secret", ["a-signing-secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
def test_a_secret_signs_what_is_sent(
    runner: WebhookRunner, receiver: Receiver, secrets: SealedSecrets, secret: str
) -> None:
    sealed = secrets.seal(secret, "shop")
    payload = {"name": "Zoë", "n": [1, None, 2.5]}
    runner.run(attempt(Kind.WEBHOOK, receiver.url, secret=sealed, payload=payload))
    (request,) = receiver.requests
    assert json.loads(request.body) == payload
    assert verify(
        [secret],
        request.headers["webhook-id"],
        request.headers["webhook-timestamp"],
        request.headers["webhook-signature"],
        request.body,
        NOW // 1000,
    )


def test_a_secret_that_cannot_be_opened_sends_nothing(
    runner: WebhookRunner, receiver: Receiver, secrets: SealedSecrets
) -> None:
    for sealed in (secrets.seal("x", "other"), secrets.seal("whsec_%", "shop")):
        failed = failure(runner.run(attempt(Kind.WEBHOOK, receiver.url, secret=sealed)))
        assert failed.message.startswith("the secret of the step cannot be used: ")
        assert not failed.retryable
    assert receiver.requests == []


def test_a_payload_is_sent_as_it_is(runner: WebhookRunner, receiver: Receiver) -> None:
    runner.run(attempt(Kind.WEBHOOK, receiver.url, payload=None))
    runner.run(attempt(Kind.WEBHOOK, receiver.url, payload=0))
    assert [request.body for request in receiver.requests] == [b"null", b"0"]


@pytest.mark.parametrize("status", [400, 401, 404, 409, 429, 500, 503])
def test_any_other_status_fails_with_what_was_said(
    runner: WebhookRunner, receiver: Receiver, status: int
) -> None:
    receiver.status = status
    receiver.body = b"out of stock"
    failed = failure(runner.run(attempt(Kind.WEBHOOK, receiver.url)))
    assert failed == Failed(f"POST {receiver.url} answered {status}: out of stock")


def test_an_answer_is_quoted_up_to_500_characters(
    runner: WebhookRunner, receiver: Receiver
) -> None:
    receiver.status = 500
    for size in (500, 501):
        receiver.body = ("é" * size).encode()
        failed = failure(runner.run(attempt(Kind.WEBHOOK, receiver.url)))
        assert failed.message == f"POST {receiver.url} answered 500: " + "é" * 500
    receiver.body = b""
    failed = failure(runner.run(attempt(Kind.WEBHOOK, receiver.url)))
    assert failed.message == f"POST {receiver.url} answered 500"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_not_followed(
    runner: WebhookRunner, receiver: Receiver, status: int
) -> None:
    receiver.status = status
    receiver.headers = {"location": receiver.url}
    failed = failure(runner.run(attempt(Kind.WEBHOOK, receiver.url)))
    assert failed.message == (
        f"POST {receiver.url} answered {status}, a redirect to {receiver.url}, and redirects are "
        "not followed: use the final URL"
    )
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("status", [300, 301, 304, 399])
def test_a_status_without_a_place_to_go_to_is_no_redirect(
    runner: WebhookRunner, receiver: Receiver, status: int
) -> None:
    receiver.status = status
    failed = failure(runner.run(attempt(Kind.WEBHOOK, receiver.url)))
    assert failed.message == f"POST {receiver.url} answered {status}"


GOOD = b"HTTP/1.1 202 Accepted\r\n"
BAD = b"HTTP/1.1 500 Oops\r\n"


@pytest.mark.parametrize(
    "rest",
    [
        b"content-length: 10\r\n\r\nshort",
        b"transfer-encoding: chunked\r\n\r\n5\r\nshort\r\nzz",
        b"transfer-encoding: chunked\r\n\r\n5\r\nshort\r\n",
        b"\r\nshort",
        b"content-encoding: gzip\r\ncontent-length: 5\r\n\r\nshort",
    ],
    ids=["short", "bad chunk", "no last chunk", "until the end", "no gzip"],
)
def test_the_status_decides_whatever_becomes_of_the_body(
    runner: WebhookRunner, rest: bytes
) -> None:
    with scripted(saying(GOOD + rest)) as url:
        outcome = runner.run(attempt(Kind.WEBHOOK, url))
        assert output(outcome) == {"delivered": True, "status": 202}
    with scripted(saying(BAD + rest)) as url:
        failed = failure(runner.run(attempt(Kind.WEBHOOK, url)))
        assert failed == Failed(f"POST {url} answered 500: short")


def test_a_body_that_never_ends_holds_no_delivery(runner: WebhookRunner) -> None:
    for start in (b"content-length: 100000\r\n\r\n", b"\r\n"):
        with scripted(dripping(GOOD + start, b"x")) as url:
            outcome = runner.run(attempt(Kind.WEBHOOK, url, timeout=600_000))
            assert output(outcome) == {"delivered": True, "status": 202}
        with scripted(dripping(BAD + start, b"x")) as url:
            failed = failure(runner.run(attempt(Kind.WEBHOOK, url, timeout=600_000)))
            assert failed.message.startswith(f"POST {url} answered 500: xx")


def test_the_connection_of_a_delivery_is_used_again_if_its_body_is_small(
    runner: WebhookRunner, receiver: Receiver
) -> None:
    for status, size in ((200, 0), (200, 65_536), (500, 1_000), (404, 0), (204, 0)):
        receiver.status, receiver.body = status, b"x" * size
        runner.run(attempt(Kind.WEBHOOK, receiver.url))
        assert receiver.connections == 1
    receiver.status, receiver.body = 200, b"x" * 65_537
    for connections in (1, 2):
        runner.run(attempt(Kind.WEBHOOK, receiver.url))
        assert receiver.connections == connections


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", 0),
        ("120", 120_000),
        ("9999999999", 9_999_999_999_000),
        ("10000000000", 10_000_000_000_000),
        ("9" * 30, 10_000_000_000_000),
        ("9" * 5_000, 10_000_000_000_000),
        ("0" * 30 + "7", 7_000),
        ("000", 0),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60_000 - 123),
        ("Tue, 14 Nov 2023 22:13:20 GMT", 0),
        ("Mon, 01 Jan 1990 00:00:00 GMT", 0),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_read(
    runner: WebhookRunner,
    receiver: Receiver,
    status: int,
    value: str,
    expected: int | None,
) -> None:
    receiver.status = status
    receiver.headers = {"retry-after": value}
    failed = failure(runner.run(attempt(Kind.WEBHOOK, receiver.url)))
    assert (failed.retry_after, failed.retryable) == (expected, True)


def test_a_large_answer_to_a_delivery_does_no_harm(
    runner: WebhookRunner, receiver: Receiver
) -> None:
    receiver.body = b"x" * (4 * limits.MIB)
    outcome = runner.run(attempt(Kind.WEBHOOK, receiver.url))
    assert output(outcome) == {"delivered": True, "status": 200}


def test_a_refused_address_is_not_tried_again_an_unknown_name_is(secrets: SealedSecrets) -> None:
    resolver = names(inside_example_com=["10.0.0.1"])
    client = HttpClient(GuardedAdapter((), resolver), StillClock())
    runner = WebhookRunner(client, secrets, StillClock())
    refused = failure(runner.run(attempt(Kind.WEBHOOK, "https://inside.example.com/")))
    assert refused == Failed(
        "the URL was refused: inside.example.com leads to 10.0.0.1, which is no public address, "
        "and this installation does not allow it",
        retryable=False,
    )
    unknown = failure(runner.run(attempt(Kind.WEBHOOK, "https://outside.example.com/")))
    assert unknown.retryable
    assert "does not resolve" in unknown.message
