"""Threads that make several attempts of one run at once."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from stepwell_engine import limits
from stepwell_engine.core.values.units import Ms


class ThreadTaskGroup:
    """The TaskGroup port on threads of its own, made when the first task comes."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._ended = threading.Semaphore(0)

    def start(self, task: Callable[[], None]) -> None:
        """Begin a task beside those that run."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(limits.CHILDREN_AT_ONCE, "child")
        self._pool.submit(self._run, task)

    def wait(self, ms: Ms | None) -> None:
        """Until a task has ended that no wait has reported yet."""
        self._ended.acquire(timeout=None if ms is None else ms / 1000)

    def close(self) -> None:
        """Wait for every task."""
        if self._pool is not None:
            self._pool.shutdown()

    def _run(self, task: Callable[[], None]) -> None:
        try:
            task()
        finally:
            self._ended.release()


class ThreadTaskGroups:
    """The TaskGroups port."""

    def open(self) -> ThreadTaskGroup:
        """A group that has no thread yet."""
        return ThreadTaskGroup()
