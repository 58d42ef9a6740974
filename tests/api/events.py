"""API Gateway events (HTTP API, payload format 2.0) as the handler gets them."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlencode


def event(
    method: str,
    path: str,
    body: str | None = None,
    *,
    token: str | None = None,
    query: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    encoded: bool = False,
    stage: str = "$default",
) -> dict[str, Any]:
    """The event of one request; `path` as in the URL: the gateway decodes it."""
    sent = {"host": "api.example.com"}
    if body is not None:
        sent["content-type"] = "application/json"
    if token is not None:
        sent["authorization"] = f"Bearer {token}"
    sent.update(headers or {})
    raw = unquote(path)
    made: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": raw if stage == "$default" else f"/{stage}{raw}",
        "rawQueryString": urlencode(query or {}),
        "headers": sent,
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "api",
            "domainName": "api.example.com",
            "http": {
                "method": method,
                "path": raw,
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "test",
            },
            "requestId": "request-1",
            "routeKey": "$default",
            "stage": stage,
            "time": "14/Nov/2023:22:13:20 +0000",
            "timeEpoch": 1_700_000_000_000,
        },
        "isBase64Encoded": encoded,
    }
    if query:
        made["queryStringParameters"] = dict(query)
    if body is not None:
        made["body"] = body
    return made


def text(value: object) -> str:
    """A body as a client writes it."""
    return json.dumps(value)
