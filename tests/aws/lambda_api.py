"""A server that answers Lambda's Invoke, on loopback."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote


@dataclass(frozen=True)
class Invocation:
    """What came in."""

    function: str
    kind: str
    event: Any


@dataclass(frozen=True)
class Result:
    """What goes out. `error` is the header of a function that failed; `code` of a refusal."""

    body: bytes = b"null"
    status: int = 200
    error: str | None = None
    code: str | None = None


@dataclass
class LambdaApi:
    """The server's end; `answer` says what a function returns."""

    url: str = ""
    invocations: list[Invocation] = field(default_factory=list)
    answer: Callable[[Invocation], Result] = lambda _: Result()


@contextmanager
def serving() -> Iterator[LambdaApi]:
    """Run a server on a free port."""
    api = LambdaApi()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            event = json.loads(self.rfile.read(int(self.headers["content-length"])))
            function = unquote(self.path.split("/")[3])
            kind = self.headers.get("x-amz-invocation-type", "RequestResponse")
            invocation = Invocation(function, kind, event)
            api.invocations.append(invocation)
            result = api.answer(invocation)
            self.send_response(result.status)
            self.send_header("content-length", str(len(result.body)))
            if result.error is not None:
                self.send_header("x-amz-function-error", result.error)
            if result.code is not None:
                self.send_header("x-amzn-errortype", result.code)
            self.end_headers()
            self.wfile.write(result.body)

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args: object) -> None:
            pass  # a client that gave up is part of some tests

    with Server(("127.0.0.1", 0), Handler) as server:
        api.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()
