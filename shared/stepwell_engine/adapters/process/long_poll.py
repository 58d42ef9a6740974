"""Requests that wait for a run, each of which holds a thread."""

import threading


class BoundedLongPollSlots:
    """The LongPollSlots port: so many slots, until `stop`."""

    def __init__(self, places: int) -> None:
        self._free = threading.Semaphore(places)
        self._over = False

    def acquire(self) -> bool:
        """Take a place; False: none is free."""
        return not self._over and self._free.acquire(blocking=False)

    def may_wait(self) -> bool:
        """Whether nobody has said `stop`."""
        return not self._over

    def release(self) -> None:
        """Give a place back."""
        self._free.release()

    def stop(self) -> None:
        """From now on nobody waits."""
        self._over = True
