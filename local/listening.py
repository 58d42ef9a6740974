"""The socket that the host listens on, before a server serves it."""

import socket
from typing import Final

HOST: Final = "127.0.0.1"
BACKLOG: Final = 2_048


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


def address_of(sock: socket.socket) -> tuple[str, int]:
    """Host and port."""
    host, port = sock.getsockname()
    return host, port


def url_of(sock: socket.socket) -> str:
    """Where the API is."""
    return f"http://{HOST}:{sock.getsockname()[1]}"
