"""The host's end of the watcher: a process that kills the commands of a host that has ended."""

import itertools
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Final

from stepwell_engine.adapters.runners import command_family

_PROGRAM: Final = (sys.executable, "-I", command_family.__file__)


class CommandWatcher:
    """One process for all commands of this one, started with the first.

    It is told of each command through a pipe that the kernel closes when this process ends, in
    whatever way. One that was itself killed is replaced when the next command starts.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._known: dict[int, list[str]] = {}  # what was told of each command that runs
        self._process: subprocess.Popen[bytes] | None = None
        os.register_at_fork(after_in_child=_calling(weakref.WeakMethod(self._let_go)))

    def start(self) -> None:
        """Start the process unless it runs. OSError if the host is short of what it takes."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                return
            self._end()
            self._process = subprocess.Popen(
                _PROGRAM,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # a Ctrl-C for the host is not for it
            )
            assert self._process.stdin is not None  # noqa: S101  it is a pipe
            os.set_blocking(self._process.stdin.fileno(), False)
            for told in self._known.values():
                for words in told:
                    self._tell(words)

    def expect(self, stdin: int) -> int:
        """A number for a command about to start, the descriptor of a pipe as its stdin.

        Should this process end before `add`, the program is known by that pipe, on Linux.
        """
        with self._lock:
            number = next(self._numbers)
            self._known[number] = []
            self._note(number, f"? {number} {os.fstat(stdin).st_ino}")
            return number

    def add(self, number: int, pid: int) -> None:
        """Have the family of a command killed if this process ends before `remove`."""
        with self._lock:
            self._note(number, f"+ {number} {pid}")

    def remove(self, number: int) -> None:
        """Forget a command that has ended."""
        with self._lock:
            del self._known[number]
            self._tell(f"- {number}")

    def close(self) -> None:
        """End the process, unless a command still runs: then it ends with this one."""
        with self._lock:
            if not self._known:
                self._end()

    def _note(self, number: int, words: str) -> None:
        self._known[number].append(words)
        self._tell(words)

    def _tell(self, words: str) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            os.write(self._process.stdin.fileno(), f"{words}\n".encode())
        except OSError:  # it has ended, or does not read: what it knows is not true any more
            self._process.kill()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            with self._process:  # closes the pipe, waits
                pass
            self._process = None

    def _let_go(self) -> None:
        """In a fork, which may outlive this process: the pipe is not the fork's to keep open."""
        if self._process is not None and self._process.stdin is not None:
            null = os.open(os.devnull, os.O_WRONLY)
            # Not closed: objects that are left believe in the number.
            os.dup2(null, self._process.stdin.fileno(), inheritable=False)
            os.close(null)


def _calling(method: weakref.WeakMethod[Callable[[], None]]) -> Callable[[], None]:
    """What a fork calls for ever cannot be taken back, so it keeps no watcher alive."""

    def call() -> None:
        found = method()
        if found is not None:
            found()

    return call
