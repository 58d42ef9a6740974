"""An HTTP server that survives the host and logs every request. Some it refuses, on purpose."""

import threading
import time
import zlib
from collections import Counter
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from stepwell_engine.adapters.system import SystemClock
from tests.crash.evidence import Execution

LONGEST = 60  # ms that an answer takes at most


class LoggingReceiver:
    """`/ok` answers 200; `/flaky` 503 to the first request of a webhook-id; `/broken` 500."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._lock = threading.Lock()
        self._log: list[Execution] = []
        self._requests: Counter[str] = Counter()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def executions(self) -> tuple[Execution, ...]:
        """Every request so far."""
        with self._lock:
            return tuple(self._log)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, path: str, effect: str) -> int:
        """Log the request, take some time over it, and choose the status."""
        with self._lock:
            place = len(self._log)
            self._log.append(Execution(effect, self._clock.now()))
            self._requests[effect] += 1
            seen = self._requests[effect]
        time.sleep(zlib.crc32(f"{effect} {seen}".encode()) % LONGEST / 1000)
        with self._lock:
            self._log[place] = replace(self._log[place], ended=self._clock.now())
        if path == "/broken":
            return 500
        return 503 if path == "/flaky" and seen == 1 else 200

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            """Hands each request to the receiver."""

            protocol_version = "HTTP/1.1"
            timeout = 5  # seconds without a byte end a connection

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", 0)))
                self.send_response(receiver._answer(self.path, self.headers["webhook-id"]))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """The log is the receiver's."""

            def handle(self) -> None:
                try:
                    super().handle()
                except ConnectionError:
                    """The host was killed while it waited for the answer."""

        return Handler
