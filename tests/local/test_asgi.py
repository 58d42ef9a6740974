"""HTTP in and out of the event that API Gateway would hand to the handler."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import pytest

from local.asgi import Bridge
from local.gateway import Context
from local.threads import Threads
from stepwell_engine import limits

JsonObject = dict[str, Any]
NOW = 1_790_000_000_123


class Clock:
    def now(self) -> int:
        return NOW

    def sleep(self, ms: int) -> None:
        raise AssertionError("the bridge never sleeps")


@pytest.fixture(scope="module")
def threads() -> Iterator[Threads]:
    threads = Threads(2, "test-request")
    yield threads
    threads.close()


class Exchange:
    """One request through the bridge; what the handler got and what was sent back."""

    def __init__(self, threads: Threads, answer: Mapping[str, Any] | Exception) -> None:
        self.events: list[JsonObject] = []
        self.contexts: list[Context] = []
        self.sent: list[JsonObject] = []
        self.unread: list[JsonObject] = []
        self._answer = answer
        self._bridge = Bridge(self._handle, threads, Clock())

    def _handle(self, event: JsonObject, context: Context) -> Mapping[str, Any]:
        self.events.append(event)
        self.contexts.append(context)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def run(
        self,
        method: str = "GET",
        path: str = "/",
        query: bytes = b"",
        headers: list[tuple[bytes, bytes]] | None = None,
        messages: list[JsonObject] | None = None,
    ) -> "Exchange":
        self.unread = messages or [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> JsonObject:
            return self.unread.pop(0)

        async def send(message: JsonObject) -> None:
            self.sent.append(message)

        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query,
            "headers": headers or [],
            "client": ("127.0.0.1", 50_000),
        }
        asyncio.run(self._bridge(scope, receive, send))
        return self

    @property
    def event(self) -> JsonObject:
        (event,) = self.events
        return event

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        return list(self.sent[0]["headers"])

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])


OK = {"statusCode": 200, "headers": {"Content-Type": "application/json"}, "body": "{}"}


def body(*chunks: bytes) -> list[JsonObject]:
    """The messages of a body that comes in these chunks."""
    last = len(chunks) - 1
    return [
        {"type": "http.request", "body": chunk, "more_body": number < last}
        for number, chunk in enumerate(chunks)
    ]


def test_an_event_has_the_shape_of_payload_format_2_0(threads: Threads) -> None:
    exchange = Exchange(threads, OK).run(
        "POST",
        "/v1/projects/demo/workflows/a%20b/runs",
        b"wait=5&tag=a%20b&tag=c&empty=",
        [
            (b"host", b"127.0.0.1:8787"),
            (b"User-Agent", b"test/1"),
            (b"authorization", b"Bearer t"),
            (b"content-type", b"application/json"),
            (b"x-many", b"1"),
            (b"x-many", b"2"),
            (b"cookie", b"a=1; b=2"),
        ],
        body(b'{"input":', b' "\xc3\xbc"}'),
    )
    request_id = exchange.contexts[0].aws_request_id
    assert exchange.event == {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": "/v1/projects/demo/workflows/a%20b/runs",
        "rawQueryString": "wait=5&tag=a%20b&tag=c&empty=",
        "cookies": ["a=1", "b=2"],
        "headers": {
            "host": "127.0.0.1:8787",
            "user-agent": "test/1",
            "authorization": "Bearer t",
            "content-type": "application/json",
            "x-many": "1,2",
        },
        "queryStringParameters": {"wait": "5", "tag": "a b,c", "empty": ""},
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "local",
            "domainName": "127.0.0.1:8787",
            "domainPrefix": "local",
            "http": {
                "method": "POST",
                "path": "/v1/projects/demo/workflows/a%20b/runs",
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": "test/1",
            },
            "requestId": request_id,
            "routeKey": "$default",
            "stage": "$default",
            "time": "21/Sep/2026:14:13:20 +0000",
            "timeEpoch": NOW,
        },
        "body": '{"input": "ü"}',
        "isBase64Encoded": False,
    }


def test_what_is_absent_has_no_member(threads: Threads) -> None:
    event = Exchange(threads, OK).run().event
    assert {"cookies", "queryStringParameters", "body"}.isdisjoint(event)
    assert event["rawQueryString"] == ""
    assert event["isBase64Encoded"] is False


@pytest.mark.parametrize(
    ("content_type", "data", "expected", "base64"),
    [
        (b"application/json; charset=utf-8", b"{}", "{}", False),
        (b"TEXT/PLAIN", b"a", "a", False),
        (b"application/octet-stream", b"\x00\x01", "AAE=", True),
        (b"application/json", b"\xff", "/w==", True),
        (b"", b"a", "YQ==", True),
    ],
)
def test_a_body_that_is_no_text_is_base64(
    threads: Threads, content_type: bytes, data: bytes, expected: str, base64: bool
) -> None:
    headers = [(b"content-type", content_type)] if content_type else []
    event = Exchange(threads, OK).run("POST", headers=headers, messages=body(data)).event
    assert (event["body"], event["isBase64Encoded"]) == (expected, base64)


def test_an_answer_becomes_a_response(threads: Threads) -> None:
    answer = {
        "statusCode": 201,
        "headers": {"Content-Type": "application/json", "X-A": 1},
        "cookies": ["a=1", "b=2"],
        "body": '{"a":"ü"}',
    }
    exchange = Exchange(threads, answer).run()
    assert exchange.status == 201
    assert exchange.body == b'{"a":"\xc3\xbc"}'
    assert exchange.headers == [
        (b"content-type", b"application/json"),
        (b"x-a", b"1"),
        (b"set-cookie", b"a=1"),
        (b"set-cookie", b"b=2"),
        (b"content-length", b"10"),
    ]


def test_a_binary_answer_is_decoded(threads: Threads) -> None:
    exchange = Exchange(threads, {"statusCode": 200, "body": "AAE=", "isBase64Encoded": True}).run()
    assert exchange.body == b"\x00\x01"


def test_an_answer_without_content_has_no_length(threads: Threads) -> None:
    exchange = Exchange(threads, {"statusCode": 204, "headers": {}}).run()
    assert (exchange.status, exchange.headers, exchange.body) == (204, [], b"")


def test_a_handler_that_raises_becomes_a_problem_without_a_trace(threads: Threads) -> None:
    exchange = Exchange(threads, RuntimeError("inner detail")).run()
    document = json.loads(exchange.body)
    assert exchange.status == 500
    assert (document["code"], document["status"]) == ("internal", 500)
    assert b"inner detail" not in exchange.body
    assert (b"content-type", b"application/problem+json") in exchange.headers


def test_a_body_of_the_limit_is_taken(threads: Threads) -> None:
    half = b"a" * (limits.MAX_BODY // 2)
    exchange = Exchange(threads, OK).run(
        "PUT", headers=[(b"content-type", b"text/plain")], messages=body(half, half)
    )
    assert exchange.status == 200
    assert len(exchange.event["body"]) == limits.MAX_BODY


def test_a_body_one_byte_past_the_limit_is_refused_and_the_rest_thrown_away(
    threads: Threads,
) -> None:
    half = b"a" * (limits.MAX_BODY // 2)
    exchange = Exchange(threads, OK).run("PUT", messages=body(half, half, b"a", half, half))
    assert exchange.events == []
    assert exchange.unread == []
    assert exchange.status == 413
    assert json.loads(exchange.body)["code"] == "payload_too_large"
    assert (b"connection", b"close") in exchange.headers


def test_a_body_that_is_announced_too_large_is_refused_before_it_is_read(threads: Threads) -> None:
    length = str(limits.MAX_BODY + 1).encode()
    messages = [*body(b"a", b"b")[:1], {"type": "http.disconnect"}]
    exchange = Exchange(threads, OK).run(
        "PUT", headers=[(b"content-length", length)], messages=messages
    )
    assert exchange.events == []
    assert exchange.status == 413


def test_a_client_that_goes_away_in_its_body_costs_nothing(threads: Threads) -> None:
    messages = [*body(b"a", b"b")[:1], {"type": "http.disconnect"}]
    exchange = Exchange(threads, OK).run("PUT", messages=messages)
    assert (exchange.events, exchange.sent) == ([], [])


def test_a_slow_body_holds_no_thread(threads: Threads) -> None:
    """With both threads busy a body can still come in; with all bodies open threads are free."""
    answered: list[int] = []

    async def story() -> None:
        gate = asyncio.Event()
        bridge = Bridge(lambda *_: OK, threads, Clock())

        def scope(path: str) -> JsonObject:
            return {
                "type": "http",
                "http_version": "1.1",
                "method": "PUT",
                "path": path,
                "raw_path": path.encode(),
                "query_string": b"",
                "headers": [],
                "client": None,
            }

        async def slow() -> JsonObject:
            await gate.wait()
            return body(b"a")[0]

        async def quick() -> JsonObject:
            return body(b"a")[0]

        async def send(message: JsonObject) -> None:
            if message["type"] == "http.response.start":
                answered.append(message["status"])

        slow_ones = [asyncio.create_task(bridge(scope("/slow"), slow, send)) for _ in range(10)]
        await asyncio.sleep(0)
        await bridge(scope("/quick"), quick, send)
        assert answered == [200]
        gate.set()
        await asyncio.gather(*slow_ones)

    asyncio.run(story())
    assert answered == [200] * 11
