"""The host under fire, which is started again when it ends by itself, as by systemd."""

import contextlib
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator

import psutil

from examples.order_pipeline.engine import Engine
from stepwell_engine.adapters.process.system import SystemClock
from tools.crash.evidence import How, Kill

LOOK = 0.02  # seconds between two looks at the process
# Also one that was started again just now: it does not handle the signal yet, and holds nothing.
STOPPED = (0, -signal.SIGTERM)
NO_ROOM = 1  # bytes that a file may have


class Supervisor:
    """Starts, stops and kills one host, and remembers how each of its processes ended."""

    def __init__(self, engine: Engine, live: Callable[[], int]) -> None:
        """`engine` runs. `live` counts the runs that have not ended."""
        self._engine = engine
        self._live = live
        self._clock = SystemClock()
        self._lock = threading.Lock()
        self._wanted = True
        self._seen = self._clock.now()  # alive
        self.kills: list[Kill] = []
        self.refusals: list[tuple[int, int]] = []

    @property
    def process(self) -> int:
        """The id of the process that was started last."""
        return self._engine.pid

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch it meanwhile."""
        over = threading.Event()
        thread = threading.Thread(target=self._watch, args=(over,))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def spawn(self) -> None:
        """Start the host, and do not wait for it."""
        with self._lock:
            self._wanted = True
            self._spawn()

    def kill(self) -> None:
        """SIGKILL."""
        self._end(How.KILLED)

    def stop(self, hurry: bool) -> None:
        """SIGTERM; a second one if it has to `hurry`."""
        self._end(How.HURRIED if hurry else How.STOPPED)

    def lock_store(self, seconds: float) -> None:
        """Be another process that writes to the store of the host."""
        file = self._engine.data / "stepwell.db"
        with contextlib.closing(sqlite3.connect(file, isolation_level=None, timeout=20)) as locking:
            began = self._clock.now()
            locking.execute("BEGIN IMMEDIATE")
            time.sleep(seconds)
            locking.execute("ROLLBACK")
            self.refusals.append((began, self._clock.now()))

    def fill_disk(self, process: int, seconds: float) -> None:
        """Leave a host, and children that it starts meanwhile, no room for a byte of any file.

        `process` has answered, or is gone: a host that begins on a full disk ends at once.
        Only Linux can do that to another process; elsewhere its store is locked.
        """
        if not hasattr(psutil.Process, "rlimit"):
            self.lock_store(seconds)
            return
        with contextlib.suppress(psutil.Error):
            host = psutil.Process(process)
            before = host.rlimit(psutil.RLIMIT_FSIZE)
            began = self._clock.now()
            host.rlimit(psutil.RLIMIT_FSIZE, (NO_ROOM, before[1]))
            time.sleep(seconds)
            host.rlimit(psutil.RLIMIT_FSIZE, before)
            self.refusals.append((began, self._clock.now()))

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(LOOK):
            with self._lock:
                if not self._wanted:
                    continue
                if self._engine.code is None:
                    self._seen = self._clock.now()
                else:
                    self._ended(How.ITSELF, self._seen, self._engine.code)
                    self._spawn()

    def _spawn(self) -> None:
        self._engine.spawn()
        self._seen = self._clock.now()

    def _end(self, how: How) -> None:
        with self._lock:
            self._wanted = False
            at = self._clock.now()
            if self._engine.code is not None:
                self._ended(How.ITSELF, self._seen, self._engine.code)
                return
            if how is How.KILLED:
                self._engine.kill()
            else:
                if how is How.HURRIED:
                    self._engine.send(signal.SIGTERM)
                    time.sleep(LOOK)  # two that are pending at once count as one
                # A step may end the host while it stops.
                code = self._engine.stop()
                if code not in STOPPED:
                    self._ended(How.ITSELF, at, code)
                    return
            self._ended(how, at)

    def _ended(self, how: How, at: int, code: int | None = None) -> None:
        pid = self._engine.pid
        self.kills.append(Kill(at, self._clock.now(), self._live(), pid, how, code))
