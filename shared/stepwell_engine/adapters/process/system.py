"""The machine's clock and randomness: the only place that reads either."""

import secrets
import threading
import time
import uuid

from stepwell_engine.core.values.units import EpochMs, Ms
from stepwell_engine.ports import Clock

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_TOKEN_LENGTH = 12  # 71 bits
_COUNTER_LIMIT = 1 << 12


class SystemClock:
    """Wall-clock time in ms."""

    def now(self) -> EpochMs:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000  # noqa: TID251  this is the Clock

    def sleep(self, ms: Ms) -> None:
        """Pause the calling thread."""
        time.sleep(ms / 1000)


class RandomIds:
    """Run ids and lease tokens from the operating system's randomness."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last = (0, 0)

    def run_id(self) -> str:
        """A UUIDv7 (RFC 9562); those of one process sort in the order they were made."""
        with self._lock:
            ms, counter = self._last
            now = self._clock.now()
            if now > ms:
                ms, counter = now, 0
            else:
                counter += 1
                if counter == _COUNTER_LIMIT:
                    ms, counter = ms + 1, 0
            self._last = (ms, counter)
        value = ms << 80 | 0x7 << 76 | counter << 64 | 0b10 << 62 | secrets.randbits(62)
        return str(uuid.UUID(int=value))

    def token(self) -> str:
        """12 letters and digits."""
        return "".join(secrets.choice(_ALPHABET) for _ in range(_TOKEN_LENGTH))
