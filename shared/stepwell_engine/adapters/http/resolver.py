"""Name resolution with a deadline, which the system's own call does not have."""

import errno
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from stepwell_engine.adapters.runners.attempts import NO_THREAD

_KEPT: Final = 5.0  # seconds that an answer is used again
_MOST: Final = 1_000  # names kept


@dataclass(slots=True)
class _Lookup:
    """One call to the system, which several threads may wait for."""

    done: threading.Event = field(default_factory=threading.Event)
    at: float = 0.0
    addresses: Sequence[str] = ()
    error: OSError | None = None


class SystemResolver:
    """Asks the operating system, once for all threads that want the same name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lookups: dict[str, _Lookup] = {}

    def __call__(self, host: str, timeout: float) -> Sequence[str]:
        """All addresses of a host. OSError if there are none or the host is
        short of something, TimeoutError after `timeout` s."""
        with self._lock:
            lookup = self._lookups.get(host)
            if lookup is None or (lookup.done.is_set() and lookup.at + _KEPT < time.monotonic()):
                lookup = self._start(host)
        if not lookup.done.wait(timeout):
            raise TimeoutError(f"resolving {host} timed out")
        if lookup.error is not None:
            raise OSError(lookup.error.errno, lookup.error.strerror) from lookup.error
        return lookup.addresses

    def _start(self, host: str) -> _Lookup:
        if len(self._lookups) >= _MOST:
            self._lookups.clear()
        lookup = self._lookups[host] = _Lookup()
        # A thread of its own, for getaddrinfo cannot be told to stop; it ends by itself.
        try:
            threading.Thread(
                target=self._resolve, args=(host, lookup), name=f"resolve {host}", daemon=True
            ).start()
        except RuntimeError as error:
            del self._lookups[host]  # nobody will answer it
            raise OSError(errno.EAGAIN, NO_THREAD) from error
        return lookup

    def _resolve(self, host: str, lookup: _Lookup) -> None:
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            lookup.addresses = tuple(dict.fromkeys(str(one[4][0]) for one in found))
        except (OSError, UnicodeError) as error:
            lookup.error = error if isinstance(error, OSError) else OSError(0, str(error))
            with self._lock:
                # A failure is not kept: the next attempt asks again.
                if self._lookups.get(host) is lookup:
                    del self._lookups[host]
        lookup.at = time.monotonic()
        lookup.done.set()
