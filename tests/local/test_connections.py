"""What a connection may cost before its client has asked."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from local.connections import HEAD_SECONDS, MAX_HEAD, STALL_SECONDS, Connection

GET = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
BODY = b"PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n"
MUCH = 64 * 1024 * 1024  # bytes, more than any socket takes at once


class Server:
    """Connections to an app that answers as a test says."""

    def __init__(self, most: int = 100) -> None:
        self.state = ServerState()
        self.answer = b"ok"
        self.let = asyncio.Event()
        self.let.set()
        self.gone = asyncio.Event()
        self._writers: list[asyncio.StreamWriter] = []
        config = Config(self._app, log_config=None, lifespan="off", ws="none", interface="asgi3")
        config.load()
        self._made = partial(Connection, most, config=config, server_state=self.state, app_state={})

    async def __aenter__(self) -> "Server":
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._made, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.let.set()
        for writer in self._writers:
            writer.transport.abort()
        while self.state.tasks or self.state.connections:
            await asyncio.sleep(0)

    async def _app(
        self,
        _scope: object,
        receive: Callable[[], Awaitable[Mapping[str, Any]]],
        send: Callable[[Mapping[str, Any]], Awaitable[None]],
    ) -> None:
        while (message := await receive()).get("more_body", False):
            pass
        if message["type"] == "http.disconnect":
            self.gone.set()
            return
        await self.let.wait()
        length = [(b"content-length", str(len(self.answer)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": length})
        await send({"type": "http.response.body", "body": self.answer})

    async def client(self, *sent: bytes) -> "Client":
        """A client; each text arrives by itself."""
        before = set(self.state.connections)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._writers.append(writer)
        while not (new := set(self.state.connections) - before):
            await asyncio.sleep(0)
        (connection,) = new
        assert isinstance(connection, Connection)
        client = Client(reader, writer, connection)
        for one in sent:
            await client.send(one)
        return client


class Client:
    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: Connection
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.connection = connection

    async def send(self, data: bytes) -> None:
        """Send, and wait until the server has it."""
        before = self.connection._moved
        self.writer.write(data)
        while self.connection._moved == before:
            await asyncio.sleep(0)

    async def closed(self) -> bytes:
        """What came until the server closed."""
        try:
            return await self.reader.read()
        except ConnectionResetError:
            return b""

    def look(self, seconds: float) -> bool:
        """Look at the connection in so many seconds; whether it stays open."""
        connection = self.connection
        connection.look(connection.loop.time() + seconds)
        return not connection.transport.is_closing()


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(10):
            await story()

    asyncio.run(bounded())


def problem(answer: bytes) -> tuple[int, str, bytes]:
    """Status, code and head of a refusal."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"connection: close" in head
    document = json.loads(body)
    assert document["status"] == int(head.split()[1])
    return document["status"], document["code"], head


@pytest.mark.parametrize("sent", [(), (b"GET / HTTP/1.1\r\nho",), (b"\r\n", b"\r\n")])
def test_a_client_that_does_not_ask_is_given_up(sent: tuple[bytes, ...]) -> None:
    async def story() -> None:
        async with Server() as server:
            client = await server.client(*sent)
            assert client.look(HEAD_SECONDS - 1)
            await client.send(b"\r\n" if sent != (b"GET / HTTP/1.1\r\nho",) else b"st")
            assert not client.look(HEAD_SECONDS + 1)  # progress does not prolong it
            assert await client.closed() == b""

    run(story)


def test_a_body_may_take_its_time_but_must_come() -> None:
    async def story() -> None:
        async with Server() as server:
            client = await server.client(BODY, b"12345")
            assert client.look(STALL_SECONDS - 1)
            assert not client.look(STALL_SECONDS + 1)
            await server.gone.wait()

    run(story)


def test_a_client_that_waits_for_its_answer_is_never_given_up() -> None:
    async def story() -> None:
        async with Server() as server:
            server.let.clear()
            client = await server.client(GET)
            assert client.look(3_600)
            await client.send(BODY)  # the next request, begun too early
            assert client.look(3_600)
            server.let.set()
            assert (await client.reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            assert not client.look(STALL_SECONDS + 1)

    run(story)


def test_an_answer_that_is_not_read_is_given_up() -> None:
    async def story() -> None:
        async with Server() as server:
            server.answer = bytes(MUCH)
            client = await server.client(GET)
            while not client.connection.transport.get_write_buffer_size():
                await asyncio.sleep(0)
            assert client.look(0)
            assert client.look(STALL_SECONDS - 1)
            assert not client.look(STALL_SECONDS + 1)
            assert len(await client.closed()) < MUCH

    run(story)


def test_one_too_many_takes_the_place_of_the_one_waited_for_longest() -> None:
    async def story() -> None:
        async with Server(most=3) as server:
            server.let.clear()
            busy = await server.client(GET)
            first = await server.client(b"GE")
            second = await server.client(BODY)
            third = await server.client(GET)
            assert await first.closed() == b""
            assert not second.connection.transport.is_closing()
            server.let.set()
            for one in (busy, third):
                assert (await one.reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")

    run(story)


def test_of_many_that_come_at_a_stroke_so_many_stay() -> None:
    async def story() -> None:
        async with Server(most=3) as server:
            # Without a turn of the loop between them: they are accepted together.
            crowd = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
            for _ in range(100):
                await asyncio.sleep(0)
            assert len(server.state.connections) == 3
            for one in crowd:
                one.close()

    run(story)


def test_one_too_many_is_refused_where_all_wait_for_answers() -> None:
    async def story() -> None:
        async with Server(most=2) as server:
            server.let.clear()
            busy = [await server.client(GET) for _ in range(2)]
            one_more = await server.client()
            status, code, head = problem(await one_more.closed())
            assert (status, code) == (503, "unavailable")
            assert b"retry-after: 1" in head
            server.let.set()
            for one in busy:
                assert (await one.reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")

    run(story)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"\x00\x01\x02 nonsense\r\n\r\n", (400, "invalid_request")),
        (b"GET / HTTP/1.1\r\nhost : a\x00\r\n\r\n", (400, "invalid_request")),
        (b"GET / HTTP/1.1\r\ncontent-length: abc\r\n\r\n", (400, "invalid_request")),
        (b"GET /\xff HTTP/1.1\r\nhost: a\r\n\r\n", (400, "invalid_request")),
        (b"FETCH / HTTP/1.1\r\nhost: a\r\n\r\n", (405, "method_not_allowed")),
        (b"get / HTTP/1.1\r\nhost: a\r\n\r\n", (405, "method_not_allowed")),
        (
            b"PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
            (400, "invalid_request"),
        ),
    ],
)
def test_what_is_no_request_is_refused_with_a_problem(
    sent: bytes, expected: tuple[int, str]
) -> None:
    async def story() -> None:
        async with Server() as server:
            client = await server.client(sent)
            client.writer.write(b"more")  # is thrown away
            status, code, head = problem(await client.closed())
            assert (status, code) == expected
            assert (b"allow: DELETE, GET" in head) == (status == 405)

    run(story)


def test_what_is_no_request_after_one_that_is_answered_later_gets_no_answer() -> None:
    async def story() -> None:
        async with Server() as server:
            server.let.clear()
            client = await server.client(GET + b"nonsense\r\n\r\n")
            assert await client.closed() == b""

    run(story)


def head_of(size: int, where: str) -> bytes:
    """A request whose URL and headers have so many bytes."""
    if where == "url":
        return b"GET /%b HTTP/1.1\r\na: b\r\n\r\n" % (b"x" * (size - 3))
    return b"GET / HTTP/1.1\r\na: %b\r\n\r\n" % (b"x" * (size - 2))


@pytest.mark.parametrize("where", ["url", "header"])
def test_a_head_has_so_many_bytes_at_most(where: str) -> None:
    async def story() -> None:
        async with Server() as server:
            for _ in range(2):
                client = await server.client(head_of(MAX_HEAD, where), head_of(MAX_HEAD, where))
                for _ in range(2):
                    assert (await client.reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
                await client.send(head_of(MAX_HEAD + 1, where))
                assert problem(await client.closed())[:2] == (400, "invalid_request")

    run(story)


def test_a_header_that_never_ends_is_not_collected() -> None:
    async def story() -> None:
        async with Server() as server:
            client = await server.client(b"GET / HTTP/1.1\r\na: ")
            for _ in range(2):
                await client.send(b"x" * MAX_HEAD)
            assert problem(await client.closed())[:2] == (400, "invalid_request")

    run(story)


def test_at_the_end_a_request_that_is_not_complete_is_dropped() -> None:
    async def story() -> None:
        async with Server() as server:
            server.let.clear()
            half, whole = await server.client(BODY), await server.client(GET)
            for one in (half, whole):
                one.connection.shutdown()
            assert await half.closed() == b""
            server.let.set()
            assert (await whole.closed()).endswith(b"ok")

    run(story)
