"""The HTTP server: uvicorn on a socket of ours, in a thread of its own."""

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import uvicorn

from local.asgi import Bridge
from local.connections import Connection
from local.listening import BACKLOG
from local.threads import Threads
from stepwell_engine.api.app import build
from stepwell_engine.wiring.embedded import Home

# Requests in progress get this long when the host stops; one that takes longer is answered 503.
STOP_SECONDS: Final = 2
LOOK: Final = 0.02  # seconds between two looks at whether the server has stopped
CONNECTIONS: Final = 1_000  # open at once; fewer where files are few: each is one
SHARE: Final = 4  # connections may use one in so many of the files that the process may open
COMPLAIN: Final = 60.0  # seconds between two log lines about connections that cannot be accepted

log = logging.getLogger(__name__)


class Server:
    """Serves the API of a home."""

    def __init__(self, home: Home, sock: socket.socket, threads: int, files: int) -> None:
        """`threads` that answer requests; `files`: how many this process may have open."""
        self._sock = sock
        self._complained: float | None = None
        self._threads = Threads(threads, "request")
        most = min(CONNECTIONS, files // SHARE)
        app = Bridge(build(home.engine.services), self._threads, home.clock)
        # Only errors: the engine logs what happens, and an invalid request is its client's mistake.
        logging.getLogger("uvicorn").setLevel(logging.ERROR)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                http=partial(Connection, most),  # type: ignore[arg-type]
                loop="asyncio",
                server_header=False,
                # asyncio accepts so many at once, and closes surplus ones only in a later turn.
                backlog=max(1, most // 4),
                callback_notify=self._look,
                timeout_notify=0,  # with every tick of uvicorn: once a second
                timeout_graceful_shutdown=STOP_SECONDS,
            )
        )
        # In a thread uvicorn installs no signal handlers.
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)

    def start(self) -> None:
        """Serve, in the background."""
        self._thread.start()

    def stop(self, at_once: Callable[[float], bool]) -> None:
        """Take no more requests, and wait for those in progress.

        `at_once` waits so many seconds for a second signal, which ends the wait.
        """
        self._server.should_exit = True
        while self._thread.is_alive() and not at_once(LOOK):
            pass
        self._threads.close()

    def _serve(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        asyncio.get_running_loop().set_exception_handler(self._failed)
        await self._server.serve(sockets=[self._sock])

    async def _look(self) -> None:
        self._sock.listen(BACKLOG)  # asyncio sets it to how many it accepts at once
        now = asyncio.get_running_loop().time()
        for connection in list(self._server.server_state.connections):
            if isinstance(connection, Connection):
                connection.look(now)

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an error of the loop; one about accepting, which repeats, once a minute at most."""
        if "accept" not in context["message"]:
            loop.default_exception_handler(context)
            return
        now = time.monotonic()
        if self._complained is None or now - self._complained >= COMPLAIN:
            self._complained = now
            log.error("no connection can be accepted: %s", context.get("exception"))
