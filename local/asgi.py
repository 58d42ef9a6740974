"""HTTP as API Gateway hands it to the Lambda function: an ASGI app around the handler.

The event is that of an HTTP API with payload format 2.0:
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

import asyncio
import base64
import json
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl

from local.threads import Threads
from stepwell_engine import limits
from stepwell_engine.api import problems
from stepwell_engine.api.replies import Reply
from stepwell_engine.errors import Problem
from stepwell_engine.ports import Clock

JsonObject = dict[str, Any]
Handler = Callable[[JsonObject, "Context"], Mapping[str, Any]]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[JsonObject], Awaitable[None]]

DRAIN_SECONDS: Final = 5.0  # how long the rest of a refused body is read and thrown away
TEXT_TYPES: Final = (
    "text/",
    "application/json",
    "application/problem+json",
    "application/xml",
    "application/javascript",
)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Context:
    """What a Lambda function is told about its invocation."""

    aws_request_id: str
    function_name: str = "stepwell-api"
    function_version: str = "$LATEST"
    memory_limit_in_mb: int = 0
    invoked_function_arn: str = ""

    def get_remaining_time_in_millis(self) -> int:
        """API Gateway waits 30 s for an answer."""
        return 30_000


class Bridge:
    """The ASGI app. The body is read before a thread is taken: slow clients hold none."""

    def __init__(self, handler: Handler, threads: Threads, clock: Clock) -> None:
        self._handler = handler
        self._threads = threads
        self._clock = clock

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        headers = _headers(scope)
        try:
            body = await _read(headers, receive)
            if isinstance(body, _Gone):
                return
            if isinstance(body, _TooLarge):
                await _refuse_body(receive, send)
                return
            answer = await self._answer(scope, headers, body)
        except asyncio.CancelledError:  # by the server, whose time to stop is over
            stopping = Problem("unavailable", "the host is being stopped: try again")
            answer = _in_form(problems.reply(stopping))
        await _respond(send, answer)

    async def _answer(
        self, scope: Mapping[str, Any], headers: Mapping[str, str], body: bytes
    ) -> Mapping[str, Any]:
        log.debug("%s %s", scope["method"], scope["path"])
        context = Context(str(uuid.uuid4()))
        event = event_of(scope, headers, body, self._clock.now(), context.aws_request_id)
        try:
            answer: Mapping[str, Any] = await self._threads.call(
                lambda: self._handler(event, context)
            )
        except Exception as error:  # noqa: BLE001  logged there
            return _in_form(problems.reply_to_error(error, context.aws_request_id))
        return answer


# --- the request ------------------------------------------------------------------------------


def event_of(
    scope: Mapping[str, Any], headers: Mapping[str, str], body: bytes, now: int, request_id: str
) -> JsonObject:
    """The event for a request. `now` in ms; `headers` lower-cased and joined.

    As with API Gateway the query string is not decoded, and cookies are apart. Nor is the path,
    unlike there: a name with a slash would pass for two.
    """
    plain = dict(headers)
    cookies = plain.pop("cookie", "")
    query = scope["query_string"].decode("latin-1")
    path = scope["raw_path"].decode("latin-1")
    client = scope.get("client")
    event: JsonObject = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": plain,
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "local",
            "domainName": plain.get("host", ""),
            "domainPrefix": "local",
            "http": {
                "method": scope["method"],
                "path": path,
                "protocol": f"HTTP/{scope['http_version']}",
                "sourceIp": client[0] if client else "",
                "userAgent": plain.get("user-agent", ""),
            },
            "requestId": request_id,
            "routeKey": "$default",
            "stage": "$default",
            "time": datetime.fromtimestamp(now // 1000, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000"),
            "timeEpoch": now,
        },
        "isBase64Encoded": False,
    }
    if cookies:
        event["cookies"] = [one.strip() for one in cookies.split(";") if one.strip()]
    if query:
        event["queryStringParameters"] = _joined(parse_qsl(query, keep_blank_values=True))
    if body:
        event["body"], event["isBase64Encoded"] = _body_text(plain.get("content-type", ""), body)
    return event


def _headers(scope: Mapping[str, Any]) -> dict[str, str]:
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
    cookies = "; ".join(value for name, value in pairs if name.lower() == "cookie")
    joined = _joined([(name.lower(), value) for name, value in pairs if name.lower() != "cookie"])
    return {**joined, "cookie": cookies} if cookies else joined


def _joined(pairs: list[tuple[str, str]]) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in pairs:
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined


def _body_text(content_type: str, body: bytes) -> tuple[str, bool]:
    """The body as the event carries it, and whether that is base64."""
    if content_type.strip().lower().startswith(TEXT_TYPES):
        try:
            return body.decode(), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode(), True


class _Gone:
    """The client went away."""


class _TooLarge:
    """The body is over the limit."""


async def _read(headers: Mapping[str, str], receive: Receive) -> bytes | _Gone | _TooLarge:
    """The whole body, never more than the limit in memory."""
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limits.MAX_BODY:
        return _TooLarge()
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return _Gone()
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > limits.MAX_BODY:
            return _TooLarge()
        if not message.get("more_body", False):
            return b"".join(chunks)


# --- the answer -------------------------------------------------------------------------------


async def _respond(send: Send, answer: Mapping[str, Any], more: bool = False) -> None:
    body = answer.get("body") or ""
    data = base64.b64decode(body) if answer.get("isBase64Encoded") else body.encode()
    headers = [
        (name.lower().encode("latin-1"), str(value).encode("latin-1"))
        for name, value in (answer.get("headers") or {}).items()
    ]
    headers += [(b"set-cookie", cookie.encode("latin-1")) for cookie in answer.get("cookies") or ()]
    status = int(answer["statusCode"])
    if status != 204:  # noqa: PLR2004  No Content
        headers.append((b"content-length", str(len(data)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data, "more_body": more})


async def _refuse_body(receive: Receive, send: Send) -> None:
    """Answer 413, then throw away what is still coming: a client that sends reads no answer."""
    text = f"the body of the request has more than {limits.MAX_BODY:,} bytes, the most it may have"
    refused = problems.reply(Problem("payload_too_large", text), Connection="close")
    await _respond(send, _in_form(refused), more=True)
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while (message := await receive())["type"] == "http.request":
                if not message.get("more_body", False):
                    break
    except TimeoutError:
        pass
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _in_form(reply: Reply) -> JsonObject:
    return {
        "statusCode": reply.status,
        "headers": {"content-type": reply.content_type, **reply.headers},
        "body": json.dumps(reply.body),
    }
