"""An HTTP server that survives the host and logs every request. Some it refuses, on purpose."""

import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from stepwell_engine.adapters.process.system import SystemClock
from tools.crash.evidence import Execution
from tools.loopback import Call, Reply, answering

LONGEST = 60  # ms that an answer takes at most
SLOW = 20  # times as long


class LoggingReceiver:
    """`/ok` answers 200; `/flaky` 503 to the first request of a webhook-id; `/broken` 500;
    `/slow` 200, after up to a second.

    `/note` takes what functions tell: that an execution begins, or that it ends.
    """

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._lock = threading.Lock()
        self._log: list[Execution] = []
        self._requests: Counter[str] = Counter()
        self._noted: dict[str, int] = {}  # places in the log
        self.url = ""

    @property
    def executions(self) -> tuple[Execution, ...]:
        """Every request so far."""
        with self._lock:
            return tuple(self._log)

    def answer(self, call: Call) -> Reply:
        """Log a request, take some time over it, and choose the status."""
        if call.path == "/note":
            self._note(call.body)
            return Reply()
        effect = call.headers["webhook-id"]
        with self._lock:
            place = len(self._log)
            self._log.append(Execution(effect, self._clock.now()))
            self._requests[effect] += 1
            seen = self._requests[effect]
        longest = LONGEST * SLOW if call.path == "/slow" else LONGEST
        time.sleep(zlib.crc32(f"{effect} {seen}".encode()) % longest / 1000)
        with self._lock:
            self._log[place] = replace(self._log[place], ended=self._clock.now())
        if call.path == "/broken":
            return Reply(500)
        return Reply(503 if call.path == "/flaky" and seen == 1 else 200)

    def _note(self, note: Any) -> None:
        now = self._clock.now()
        with self._lock:
            if "effect" in note:
                self._noted[note["id"]] = len(self._log)
                self._log.append(Execution(note["effect"], now, process=note["process"]))
            else:
                place = self._noted[note["id"]]
                self._log[place] = replace(self._log[place], ended=now)


@contextmanager
def logging_receiver() -> Iterator[LoggingReceiver]:
    """Run a receiver."""
    receiver = LoggingReceiver()
    with answering(receiver.answer) as receiver.url:
        yield receiver
