"""uvicorn's HTTP connection, with limits on what a client may cost before its request is complete.

The limits are the seconds for a request and for reading the answer, the bytes of the head, and the
number of open connections. What is refused before it reaches the app is answered with a problem
document. uvicorn has an option for idle connections only.
"""

import asyncio
import json
import re
import sys
from http import HTTPStatus
from typing import Any, Final

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from stepwell_engine import limits
from stepwell_engine.api import problems
from stepwell_engine.api.replies import Reply
from stepwell_engine.errors import Problem

HEAD_SECONDS: Final = 10.0  # for the whole head of a request, from the last answer on
STALL_SECONDS: Final = 30.0  # without any progress of a body, or of an answer that is not read
MAX_HEAD: Final = 16 * limits.KIB  # bytes of the URL and of all header names and values
METHODS: Final = "DELETE, GET, PATCH, POST, PUT"
_REQUEST_LINE: Final = re.compile(rb"[A-Za-z-]{1,32} ")


class Connection(HttpToolsProtocol):
    """One connection."""

    def __init__(
        self,
        most: int,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """`most`: connections that may be open at once."""
        super().__init__(config, server_state, app_state, _loop)
        self._most = most
        self._begun = self._moved = self.loop.time()
        self._in_body = False
        self._head = 0  # bytes of the URL and the headers
        self._received = 0  # bytes since the last request was complete
        self._data = b""
        self._unread = 0  # bytes of answers, as of the last look
        self._refused = False

    @property
    def awaited(self) -> tuple[float, float] | None:
        """Since when the host waits for the client, and its limit in s; None: the client waits."""
        if self._unread:
            return self._moved, STALL_SECONDS
        if self._refused or self.cycle is None or self.cycle.response_complete:
            return self._begun, HEAD_SECONDS
        if self._in_body and not self.pipeline:
            return self._moved, STALL_SECONDS
        return None

    def look(self, now: float) -> None:
        """Close the connection if its client takes too long. `now`: the loop's time."""
        unread = self.transport.get_write_buffer_size()
        if unread != self._unread:
            self._unread, self._moved = unread, now
        awaited = self.awaited
        if awaited is not None and now - awaited[0] > awaited[1]:
            self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Beyond the limit close the one that takes longest; if none is idle, refuse this one."""
        super().connection_made(transport)
        if len(self.connections) <= self._most:
            return
        # Connections that are being closed stay in the set until the loop gets to them.
        there = [
            one
            for one in self.connections
            if isinstance(one, Connection) and not one.transport.is_closing()
        ]
        if len(there) <= self._most:
            return
        longest, since = self, self._begun
        for one in there:
            awaited = one.awaited
            if awaited is not None and awaited[0] < since:
                longest, since = one, awaited[0]
        if longest is self:
            text = f"the host has {self._most:,} connections, the most it takes: try again"
            self._refuse(problems.reply(Problem("unavailable", text)))
        else:
            longest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse what the client sent; after a refusal it is thrown away."""
        if self._refused:
            return
        self._moved = self.loop.time()
        self._received += len(data)
        self._data = data
        super().data_received(data)
        self._data = b""
        # The parser reports no header that never ends. Separators are less than names and values.
        if not self._in_body and self._received > 2 * MAX_HEAD and not self._refused:
            self._refuse(_head_too_large())

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._head = 0

    def on_url(self, url: bytes) -> None:
        """A part of the URL."""
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer of a chunked body."""
        super().on_header(name, value)
        self._count(len(name) + len(value))

    def on_headers_complete(self) -> None:
        """The body begins."""
        self._in_body = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is complete."""
        self._in_body = False
        self._received = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The time for the next request begins."""
        self._begun = self._moved = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  uvicorn's
        """Refuse what the parser rejected; called while its error is handled."""
        if self._head > MAX_HEAD:
            self._refuse(_head_too_large())
        elif isinstance(
            sys.exception(), httptools.HttpParserInvalidMethodError
        ) and _REQUEST_LINE.match(self._data):
            text = f"this is not a method of HTTP that is known here, only {METHODS}"
            self._refuse(problems.reply(Problem("method_not_allowed", text), Allow=METHODS))
        else:
            text = "the request is not valid HTTP/1.1"
            self._refuse(problems.reply(Problem("invalid_request", text)))

    def shutdown(self) -> None:
        """Close at once if the request is not complete: nothing of it has been carried out."""
        if self._refused or (self._in_body and not self.pipeline):
            self.transport.abort()
        else:
            super().shutdown()

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > MAX_HEAD:
            raise ValueError("the head is too large")  # becomes an error of the parser

    def _refuse(self, reply: Reply) -> None:
        """Answer, then wait for the client to close: closing first could discard the answer."""
        self._refused = True
        self._begun = self.loop.time()
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if cycle.response_started or self.pipeline or not self._in_body:
                self.transport.abort()  # it would be taken for the answer to an earlier request
                return
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.write(_message(reply))
        self.transport.write_eof()


def _head_too_large() -> Reply:
    text = f"the URL and the headers have more than {MAX_HEAD:,} bytes together, the most they may"
    return problems.reply(Problem("invalid_request", text))


def _message(reply: Reply) -> bytes:
    body = json.dumps(reply.body).encode()
    headers = {
        "content-type": reply.content_type,
        "content-length": len(body),
        **reply.headers,
        "connection": "close",
    }
    lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}"]
    lines += [f"{name.lower()}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body
