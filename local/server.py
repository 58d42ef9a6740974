"""The HTTP server: uvicorn on a socket of ours, in a thread of its own."""

import logging
import socket
import threading
from collections.abc import Callable
from typing import Final

import uvicorn

from functions.api.app import build
from local.asgi import Bridge
from local.listening import BACKLOG
from local.threads import Threads
from stepwell_engine.wiring.embedded import Home

# Requests in progress get this long when the host stops; one that still waits is answered 503.
STOP_SECONDS: Final = 2
LOOK: Final = 0.02  # seconds between two looks at whether the server has stopped


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
