"""A gate within one process."""

import threading


class ProcessGate:
    """The Gate port on a lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def enter(self) -> bool:
        """Go in, without waiting for it."""
        return self._lock.acquire(blocking=False)

    def leave(self) -> None:
        """Let the next one in."""
        self._lock.release()
