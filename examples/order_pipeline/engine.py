"""The embedded engine as a process of its own, which can be killed and started again."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from examples.order_pipeline.api import Access

ROOT = Path(__file__).resolve().parents[2]
START_TIMEOUT = 60  # seconds
STOP_TIMEOUT = 20  # seconds
LOOK_EVERY = 0.01  # seconds


class EngineFailed(Exception):
    """The engine did not start, or ended by itself."""


class Engine:
    """`python -m local up` on one data folder: `home/data`, with its output in `home/engine.log`.

    The first start takes a free port; later ones take the same, so that its address stays.
    """

    def __init__(self, home: Path, functions: Path | None = None) -> None:
        """`functions`: a folder with Python modules that function steps may call."""
        self.data = home / "data"
        self._log = home / "engine.log"
        self._functions = functions
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the engine that was started last."""
        return self._process.pid if self._process else 0

    @property
    def code(self) -> int | None:
        """The exit code of the engine that was started last; None if it runs."""
        return self._process.poll() if self._process else 0

    def send(self, how: signal.Signals) -> None:
        """Send the engine a signal, if it runs."""
        if self._process is not None:
            self._process.send_signal(how)

    def spawn(self) -> None:
        """Start the process, and do not wait for it."""
        command = [sys.executable, "-m", "local", "up"]
        command += ["--port", str(self._port), "--data", str(self.data)]
        if self._functions is not None:
            command += ["--functions", str(self._functions)]
        with self._log.open("ab") as log:
            # A session of its own: Ctrl-C in the terminal is for this program, which then stops it.
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def start(self) -> Access:
        """Start the process and wait until it answers."""
        written = self._written()
        self.spawn()
        ends = time.monotonic() + START_TIMEOUT
        while time.monotonic() < ends:
            if self._process is not None and self._process.poll() is not None:
                raise EngineFailed(f"the engine ended at its start:\n{self.last_words()}")
            if self._written() != written and self._answers():
                return self.access()
            time.sleep(LOOK_EVERY)
        raise EngineFailed(f"the engine does not answer:\n{self.last_words()}")

    def access(self) -> Access:
        """How to reach the engine that was started last."""
        access = Access(**json.loads(self._credentials.read_text("utf-8")))
        self._port = urlsplit(access.url).port or 0
        return access

    def kill(self) -> int:
        """SIGKILL: no warning, no goodbye. The exit code."""
        return self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM, then nothing is left running, PostgreSQL included. The exit code."""
        code = self._end(signal.SIGTERM)
        self._stop_postgres()
        return code

    def left_running(self) -> list[int]:
        """Process ids of PostgreSQL servers that still work in the data folder."""
        found = []
        for file in self.data.glob("**/postmaster.pid"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                pid = int(file.read_text("utf-8").splitlines()[0])
                if _works_in(file.parent, pid):
                    found.append(pid)
        return found

    def last_words(self) -> str:
        """The end of what the engine has printed."""
        return self._log.read_text("utf-8", "replace")[-2000:]

    @property
    def _credentials(self) -> Path:
        return self.data / "credentials.json"

    def _written(self) -> int:
        """When credentials.json was written last; 0 if never."""
        try:
            return self._credentials.stat().st_mtime_ns
        except (FileNotFoundError, NotADirectoryError):
            return 0

    def _answers(self) -> bool:
        try:
            parts = urlsplit(self.access().url)
            socket.create_connection((parts.hostname, parts.port), timeout=1).close()
        except (OSError, ValueError):
            return False
        return True

    def _end(self, how: signal.Signals) -> int:
        process = self._process
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(how)
        try:
            return process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def _stop_postgres(self) -> None:
        """An engine that was killed could not stop its PostgreSQL."""
        ends = time.monotonic() + STOP_TIMEOUT
        for pid in self.left_running():
            os.kill(pid, signal.SIGINT)  # PostgreSQL's fast shutdown
        while self.left_running() and time.monotonic() < ends:
            time.sleep(LOOK_EVERY)


def _works_in(folder: Path, pid: int) -> bool:
    """Whether this process runs in this folder, as a PostgreSQL does in its own."""
    try:
        return folder.samefile(psutil.Process(pid).cwd())
    except (psutil.Error, OSError):  # it has ended, and be it not yet reaped
        return False
