"""The socket that the API is served on."""

import socket

import pytest

from local.listening import PortBusy, listen


def test_port_0_takes_a_free_one_on_loopback_alone() -> None:
    with listen(0) as sock:
        host, port = sock.getsockname()
        assert host == "127.0.0.1"
        assert port > 0


def test_a_port_can_be_taken_once() -> None:
    with listen(0) as sock, pytest.raises(PortBusy, match="Address already in use"):
        listen(sock.getsockname()[1])


def test_answers_are_sent_without_nagles_delay() -> None:
    """asyncio sees to it for sockets that say they are TCP."""
    with listen(0) as sock:
        assert sock.proto == socket.IPPROTO_TCP
