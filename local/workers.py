"""The host's threads: executors that advance runs, and the tick."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, assert_never

from stepwell_engine.core.values.subject import Subject, SubjectKind
from stepwell_engine.errors import StoreError
from stepwell_engine.wiring.embedded import Home

BUDGET: Final = 5_000  # ms that one run may go on before others get their turn
REPEAT: Final = 1_000  # ms after which a hint is repeated whose store did not answer
TICK: Final = 1.0  # seconds
LOOK: Final = 0.02  # seconds between two looks at the runs in progress when the host stops

log = logging.getLogger(__name__)


class Workers:
    """Executor threads and a tick thread over one home."""

    def __init__(self, home: Home, count: int) -> None:
        self._home = home
        self._stopping = threading.Event()
        self._executors = [
            threading.Thread(target=self._execute, name=f"executor-{number}", daemon=True)
            for number in range(count)
        ]
        self._ticker = threading.Thread(target=self._tick, name="tick", daemon=True)

    def start(self) -> None:
        """Start all threads; the first tick comes at once."""
        for thread in (self._ticker, *self._executors):
            thread.start()

    def halt(self) -> None:
        """Take no more hints."""
        self._stopping.set()
        self._home.hints.close()

    def wait(self, seconds: float, at_once: Callable[[float], bool]) -> int:
        """After `halt`, wait at most `seconds` for the runs in progress; how many are left.

        `at_once` waits so many seconds for a second signal, which ends the wait.
        """
        ends = time.monotonic() + seconds
        while (left := self._home.hints.taken) and time.monotonic() < ends:
            if at_once(LOOK):
                break
        self._ticker.join(LOOK)
        return left

    def abandon(self) -> None:
        """Let go of the runs that are left: each starts its step in flight anew with the next host.

        The threads are daemons, which end with the process.
        """
        kept = self._home.abandon()
        if kept:
            log.warning("runs that the store did not let go of: %d", kept)

    def _execute(self) -> None:
        hints = self._home.hints
        while (hint := hints.take()) is not None:
            subject = hint.subject
            try:
                self._look_at(subject)
            except StoreError as error:
                if self._stopping.is_set():
                    return  # closed under an abandoned step
                log.warning("%s %s: %s; trying again", subject.kind, subject.id, error)
                hints.hint(subject, REPEAT)
            except Exception:
                # A defect: the run stays as it is, and the tick finds it when its lease is over.
                log.exception("%s %s: advancing failed", subject.kind, subject.id)
            finally:
                hints.done(subject)

    def _look_at(self, subject: Subject) -> None:
        match subject.kind:
            case SubjectKind.RUN:
                self._home.engine.advance.run(subject.id, subject.project, BUDGET)
            case _:
                assert_never(subject.kind)

    def _tick(self) -> None:
        since = None  # a start hints everything
        while True:
            try:
                since = self._home.engine.sweep.tick(since=since).began
            except StoreError as error:
                log.warning("the tick failed: %s; trying again", error)
            except Exception:
                log.exception("the tick failed; trying again")
            if self._stopping.wait(TICK):
                return
