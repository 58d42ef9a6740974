"""The HTTP server: uvicorn on a socket of ours, in a thread of its own."""

import logging
import socket
import threading
from collections.abc import Callable
from typing import Final

import uvicorn

from functions.api.app import build
from local.asgi import Bridge
from local.threads import Threads
from stepwell_engine.wiring.embedded import Home

HOST: Final = "127.0.0.1"
BACKLOG: Final = 2_048
# Requests in progress get this long when the host stops; one that still waits is answered 503.
STOP_SECONDS: Final = 2
LOOK: Final = 0.02  # seconds between two looks at whether the server has stopped


class PortBusy(Exception):
    """Nobody can listen on this port."""


def listen(port: int) -> socket.socket:
    """A socket that listens on 127.0.0.1; clients are kept waiting until a server serves it.

    Port 0 takes a free one. PortBusy, one sentence, if that cannot be done.
    """
    # TCP is named, for asyncio switches Nagle's delay (40 ms) off only where it is.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((HOST, port))
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise PortBusy(
            f"port {port} of {HOST} cannot be used: {error.strerror}; "
            "name another with --port, or 0 for a free one"
        ) from error
    return sock


class Server:
    """Serves the API of a home."""

    def __init__(self, home: Home, sock: socket.socket, threads: int) -> None:
        self._sock = sock
        self._threads = Threads(threads, "request")
        app = Bridge(build(home.engine.services), self._threads, home.clock)
        # Only defects: our own log says what happens, and a broken request is its client's affair.
        logging.getLogger("uvicorn").setLevel(logging.ERROR)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                http="httptools",
                loop="asyncio",
                server_header=False,
                backlog=BACKLOG,
                timeout_graceful_shutdown=STOP_SECONDS,
            )
        )
        # In a thread uvicorn leaves the signals to us.
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)

    @property
    def url(self) -> str:
        """Where the API is."""
        return f"http://{HOST}:{self._sock.getsockname()[1]}"

    def start(self) -> None:
        """Serve, in the background."""
        self._thread.start()

    def stop(self, at_once: Callable[[float], bool]) -> None:
        """Take no more requests, and wait for those in progress.

        `at_once` waits so many seconds for a word that there is no time for that.
        """
        self._server.should_exit = True
        while self._thread.is_alive() and not at_once(LOOK):
            pass
        self._threads.close()

    def _serve(self) -> None:
        self._server.run(sockets=[self._sock])
