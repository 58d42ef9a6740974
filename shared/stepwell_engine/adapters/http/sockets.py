"""Sockets with a deadline for a whole exchange.

A socket's own timeout starts anew with every call, so a peer that sends a byte now and then could
hold a worker for ever. These give each call the time that is left.
"""

import select
import socket
import ssl
import time
from typing import Any


class DeadlineSocket(socket.socket):
    """A plain socket. `deadline` is monotonic time in s; `received` counts bytes that came."""

    deadline = 0.0
    received = 0

    def sendall(self, *args: Any) -> None:
        """Send all. TimeoutError at the deadline."""
        self.settimeout(left(self.deadline))
        super().sendall(*args)

    def recv_into(self, *args: Any) -> int:
        """Receive some. TimeoutError at the deadline."""
        self.settimeout(left(self.deadline))
        count = super().recv_into(*args)
        self.received += count
        return count


class DeadlineTlsSocket(ssl.SSLSocket):
    """The same over TLS."""

    deadline = 0.0
    received = 0

    def send(self, *args: Any) -> int:
        """Send some; sendall goes through here. TimeoutError at the deadline."""
        self.settimeout(left(self.deadline))
        return super().send(*args)

    def recv_into(self, *args: Any) -> int:
        """Receive some. TimeoutError at the deadline."""
        self.settimeout(left(self.deadline))
        count = super().recv_into(*args)
        self.received += count
        return count


def left(deadline: float) -> float:
    """Seconds until a monotonic deadline. TimeoutError if it has passed."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("timed out")
    return seconds


def has_news(sock: socket.socket) -> bool:
    """Whether bytes came, or the end, that nobody asked for."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def connect(address: str, port: int, deadline: float) -> DeadlineSocket:
    """A TCP connection to an IP address. OSError, TimeoutError at the deadline."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = DeadlineSocket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(left(deadline))
        sock.connect((address, port))
    except BaseException:
        sock.close()
        raise
    sock.deadline = deadline
    return sock


def wrap(
    sock: DeadlineSocket, context: ssl.SSLContext, host: str, deadline: float
) -> DeadlineTlsSocket:
    """TLS on a connection, the certificate checked for `host`. OSError; closes `sock` then.

    The handshake as a whole keeps to the timeout that the socket has when it starts.
    """
    try:
        sock.settimeout(left(deadline))
        tls = context.wrap_socket(sock, server_hostname=host)
    except BaseException:
        sock.close()
        raise
    assert isinstance(tls, DeadlineTlsSocket)  # noqa: S101  what tls_context() set up
    tls.deadline = deadline
    return tls


def tls_context(cafile: str) -> ssl.SSLContext:
    """A context that trusts the authorities in `cafile` and makes sockets with a deadline."""
    context = ssl.create_default_context(cafile=cafile)
    context.sslsocket_class = DeadlineTlsSocket
    return context
