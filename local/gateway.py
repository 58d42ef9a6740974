"""Requests and answers in the form of API Gateway: an HTTP API with payload format 2.0.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl

from stepwell_engine.api.replies import Reply

JsonObject = dict[str, Any]

TEXT_TYPES: Final = (
    "text/",
    "application/json",
    "application/problem+json",
    "application/xml",
    "application/javascript",
)
NO_CONTENT: Final = 204


@dataclass(frozen=True)
class Context:
    """The context of an invocation, as a Lambda function gets it."""

    aws_request_id: str
    function_name: str = "stepwell-api"
    function_version: str = "$LATEST"
    memory_limit_in_mb: int = 0
    invoked_function_arn: str = ""

    def get_remaining_time_in_millis(self) -> int:
        """API Gateway waits 30 s for an answer."""
        return 30_000


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


def headers_of(scope: Mapping[str, Any]) -> dict[str, str]:
    """The headers of an ASGI request: lower-cased, those of one name joined."""
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


def answer_of(reply: Reply) -> JsonObject:
    """A reply as a Lambda function returns it."""
    return {
        "statusCode": reply.status,
        "headers": {"content-type": reply.content_type, **reply.headers},
        "body": json.dumps(reply.body),
    }


def response_of(answer: Mapping[str, Any]) -> tuple[JsonObject, bytes]:
    """The start of the ASGI response, and its body, for what a Lambda function returned."""
    text = answer.get("body") or ""
    body = base64.b64decode(text) if answer.get("isBase64Encoded") else text.encode()
    headers = [
        (name.lower().encode("latin-1"), str(value).encode("latin-1"))
        for name, value in (answer.get("headers") or {}).items()
    ]
    headers += [(b"set-cookie", cookie.encode("latin-1")) for cookie in answer.get("cookies") or ()]
    status = int(answer["statusCode"])
    if status != NO_CONTENT:
        headers.append((b"content-length", str(len(body)).encode()))
    return {"type": "http.response.start", "status": status, "headers": headers}, body
