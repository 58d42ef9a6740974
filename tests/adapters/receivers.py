"""Real HTTP servers on loopback, well-behaved and not."""

import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Request:
    """What a receiver got. `connection` numbers the connections."""

    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


@dataclass
class Receiver:
    """An HTTP server that answers everything with the same."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    # Close each connection after its answer, without saying so in the answer.
    hang_up: bool = False
    # Wakes a test that waits for a connection to be closed.
    closed: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"


@contextmanager
def serving(receiver: Receiver, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """Run a receiver."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            receiver.connections += 1
            self.number = receiver.connections

        def finish(self) -> None:
            super().finish()
            self.connection.close()
            receiver.closed.release()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.requests.append(Request(self.path, headers, body, self.number))
            answer = receiver.body  # a client may go on as soon as it has the head
            self.send_response(receiver.status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
            self.close_connection = receiver.hang_up

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128  # with the default of 5, many clients at once are turned away

        def handle_error(self, *args: object) -> None:
            pass  # a client that breaks off is part of some tests

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        receiver.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield receiver
        server.shutdown()
        thread.join()


Script = Callable[[socket.socket, threading.Event], None]


@contextmanager
def scripted(script: Script) -> Iterator[str]:
    """A TCP server that runs `script` on each connection, with an event that ends it; its URL."""
    over = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):  # the client has gone
                script(self.request, over)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/hook"
        over.set()
        server.shutdown()
        thread.join()


def dripping(start: bytes, drop: bytes) -> Script:
    """Sends `start`, then `drop` again and again, for ever."""

    def script(sock: socket.socket, over: threading.Event) -> None:
        sock.sendall(start)
        while not over.wait(0.01):
            sock.sendall(drop)

    return script


def silent(sock: socket.socket, over: threading.Event) -> None:
    """Takes a connection and never says anything."""
    over.wait()


def saying(answer: bytes) -> Script:
    """Reads a request, sends `answer`, closes."""

    def script(sock: socket.socket, over: threading.Event) -> None:
        read_request(sock)
        sock.sendall(answer)

    return script


def read_request(sock: socket.socket) -> bytes:
    """One request, to the end of its body."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += receive(sock)
    head, _, body = got.partition(b"\r\n\r\n")
    length = next(
        int(line.partition(b":")[2])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    )
    while len(body) < length:
        body += receive(sock)
    return head + b"\r\n\r\n" + body


def receive(sock: socket.socket) -> bytes:
    """Some bytes; ConnectionError at the end."""
    some = sock.recv(65_536)
    if not some:
        raise ConnectionError("closed")
    return some
