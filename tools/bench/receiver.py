"""The other end of the webhooks: a process of its own that answers at once and does nothing."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
HEAD_ENDS = b"\r\n\r\n"


class Sink(asyncio.Protocol):
    """Answers every request of a connection; requests come with a Content-Length."""

    def __init__(self) -> None:
        self._data = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection to answer on."""
        if isinstance(transport, asyncio.WriteTransport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer what is complete."""
        self._data += data
        while (size := _request_size(self._data)) is not None and size <= len(self._data):
            self._data = self._data[size:]
            if self._transport is not None:
                self._transport.write(ANSWER)


def _request_size(data: bytes) -> int | None:
    """Bytes of the first request; None while its head is not complete."""
    head, found, _ = data.partition(HEAD_ENDS)
    if not found:
        return None
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(head) + len(HEAD_ENDS) + int(line.partition(b":")[2])
    return len(head) + len(HEAD_ENDS)


@contextmanager
def receiver() -> Iterator[str]:
    """The address of a receiver in a process of its own."""
    command = [sys.executable, "-m", "tools.bench.receiver"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the receiver has no pipes")
        yield process.stdout.readline().strip()
        process.stdin.close()  # which ends it


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Sink, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve())
