"""A receiver on loopback that a story scripts: webhooks and functions by URL end here."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Call:
    """A request that came in."""

    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        """The parsed body."""
        return json.loads(self.raw)


@dataclass(frozen=True)
class Reply:
    """What the receiver answers."""

    status: int = 200
    body: bytes = b""


class Receiver:
    """Keeps what came in, and answers what `answer` says: everything with 200 at first.

    `answer` is called in a thread of the receiver's while the step is in flight.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.calls: list[Call] = []
        self.answer: Callable[[Call], Reply] = lambda _: Reply()

    def at(self, path: str) -> list[Call]:
        """The requests to one path."""
        return [call for call in self.calls if call.path == path]

    def script(self, *replies: Reply) -> None:
        """Answer with these, one after the other, the last one for ever."""
        left = list(replies)
        self.answer = lambda _: left.pop(0) if len(left) > 1 else left[0]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            call = Call(self.path, headers, raw)
            receiver.calls.append(call)
            reply = receiver.answer(call)
            self.send_response(reply.status)
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args: object) -> None:
            pass  # a client that gave up is part of some stories

    with Server(("127.0.0.1", 0), Handler) as server:
        receiver = Receiver(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
