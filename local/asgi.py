"""The ASGI app: each request becomes an event of API Gateway, as on AWS, for the same API."""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from local.gateway import Context, JsonObject, answer_of, event_of, headers_of, response_of
from local.threads import Threads
from stepwell_engine import limits
from stepwell_engine.api import problems
from stepwell_engine.errors import Problem
from stepwell_engine.ports import Clock

Handler = Callable[[JsonObject, Context], Mapping[str, Any]]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[JsonObject], Awaitable[None]]

DRAIN_SECONDS: Final = 5.0  # how long the rest of a refused body is read and thrown away

log = logging.getLogger(__name__)


class Bridge:
    """The ASGI app. The body is read before a thread is taken: slow clients occupy none."""

    def __init__(self, handler: Handler, threads: Threads, clock: Clock) -> None:
        self._handler = handler
        self._threads = threads
        self._clock = clock

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        try:
            answer = await self._answer(scope, receive)
        except _ClientGone:
            return
        except _BodyTooLarge:
            await _refuse_body(receive, send)
            return
        except asyncio.CancelledError:  # by the server, whose time to stop is over
            stopping = Problem("unavailable", "the host is being stopped: try again")
            answer = answer_of(problems.reply(stopping))
        await _respond(send, answer)

    async def _answer(self, scope: Mapping[str, Any], receive: Receive) -> Mapping[str, Any]:
        headers = headers_of(scope)
        body = await _read(headers, receive)
        log.debug("%s %s", scope["method"], scope["path"])
        context = Context(str(uuid.uuid4()))
        event = event_of(scope, headers, body, self._clock.now(), context.aws_request_id)
        try:
            answer: Mapping[str, Any] = await self._threads.call(
                lambda: self._handler(event, context)
            )
        except Exception as error:  # noqa: BLE001  logged there
            return answer_of(problems.reply_to_error(error, context.aws_request_id))
        return answer


class _ClientGone(Exception):
    """The client closed the connection before its body was complete."""


class _BodyTooLarge(Exception):
    """The body exceeds the limit."""


async def _read(headers: Mapping[str, str], receive: Receive) -> bytes:
    """The whole body, never more than the limit in memory. _ClientGone, _BodyTooLarge."""
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limits.MAX_BODY:
        raise _BodyTooLarge
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _ClientGone
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > limits.MAX_BODY:
            raise _BodyTooLarge
        if not message.get("more_body", False):
            return b"".join(chunks)


async def _respond(send: Send, answer: Mapping[str, Any], more: bool = False) -> None:
    start, body = response_of(answer)
    await send(start)
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def _refuse_body(receive: Receive, send: Send) -> None:
    """Answer 413, then throw away what is still coming: a client that sends reads no answer."""
    text = f"the body of the request has more than {limits.MAX_BODY:,} bytes, the most it may have"
    refused = problems.reply(Problem("payload_too_large", text), Connection="close")
    await _respond(send, answer_of(refused), more=True)
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while (message := await receive())["type"] == "http.request":
                if not message.get("more_body", False):
                    break
    except TimeoutError:
        pass
    await send({"type": "http.response.body", "body": b"", "more_body": False})
