"""Functions by command: a program that reads the event and prints what it returns, as JSON."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import IO, Any, Final

from stepwell_engine import limits
from stepwell_engine.adapters.runners.attempts import (
    deferred,
    event_of,
    is_shortage,
    output_from,
    timed_out,
    too_long,
)
from stepwell_engine.adapters.runners.command_family import kill_family
from stepwell_engine.adapters.runners.command_watcher import CommandWatcher
from stepwell_engine.adapters.runners.deadline import Deadline
from stepwell_engine.core.run.attempt import Attempt, Deferred, Failed, Outcome
from stepwell_engine.core.values import jsonvalue

_PASSED_ON: Final = ("HOME", "LANG", "PATH")
_CHUNK: Final = 64 * limits.KIB
_MAX_STDERR: Final = 4 * limits.KIB  # its end
_SHOWN_STDERR: Final = 500  # characters
# A program may end and leave its pipes to others: this often its end is checked for.
_LOOK_SECONDS: Final = 0.05
_LAST_TURNS: Final = 2 * limits.MIB // _CHUNK  # two pipes contain no more


class Commands:
    """Runs programs, without a shell. The event comes on stdin; stdout is the output, as JSON."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """`environment`: that of the host, of which a program gets HOME, LANG and PATH."""
        self._environment = {name: environment[name] for name in _PASSED_ON if name in environment}
        self._watcher = CommandWatcher()
        self._running: set[subprocess.Popen[bytes]] = set()

    def close(self) -> None:
        """Let go of what runs no command; those in flight end with this process."""
        self._watcher.close()

    def end(self) -> None:
        """Kill what runs: this process ends too, and a successor will run it again."""
        for process in list(self._running):
            kill_family(process.pid, running=process.poll() is None)

    def call(self, words: Sequence[str], attempt: Attempt, deadline: Deadline) -> Outcome:
        """Run once. At the end of its time, and of the program, its process group is killed; at
        the end of its time also the descendants that have left the group.
        """
        what = f'the command "{words[0]}"'
        with ExitStack() as opened:
            try:
                selector = opened.enter_context(selectors.DefaultSelector())
                reader, writer = os.pipe()
                stdin = opened.enter_context(os.fdopen(writer, "wb", buffering=0))
                reading = opened.enter_context(os.fdopen(reader, "rb", buffering=0))
                self._watcher.start()
                if deadline.passed():
                    return deferred(deadline)
                opened.callback(self._watcher.remove, number := self._watcher.expect(reader))
                process = subprocess.Popen(
                    words,
                    stdin=reading,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=self._environment,
                    start_new_session=True,
                )
            except OSError as error:
                reason = f"{what} cannot be started: {error.strerror or error}"
                return Deferred(reason) if is_shortage(error) else Failed(reason)
            opened.enter_context(process)
            opened.callback(_kill, process)
            self._running.add(process)
            opened.callback(self._running.discard, process)
            reading.close()
            self._watcher.add(number, process.pid)
            talk = _Talk(process, stdin, selector, jsonvalue.encode(event_of(attempt)))
            try:
                talk.run(deadline.at)
            except TimeoutError:
                return timed_out(what, deadline)
        if len(talk.stdout) > limits.MAX_RAW_OUTPUT:
            return too_long(f"what {what} printed")
        if process.returncode:
            return Failed(f"{what} {_ended(process.returncode)}{_tail(talk.stderr)}")
        return output_from(bytes(talk.stdout), f"what {what} printed")


class _Talk:
    """Writes the event to a process and collects its output, until it ends."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        stdin: IO[bytes],
        selector: selectors.BaseSelector,
        event: bytes,
    ) -> None:
        self._process = process
        self._left = memoryview(event)
        self._selector = selector
        self.stdout = bytearray()
        self.stderr = bytearray()
        for pipe, events, handle in (
            (stdin, selectors.EVENT_WRITE, self._feed),
            (process.stdout, selectors.EVENT_READ, self._hear),
            (process.stderr, selectors.EVENT_READ, self._hear),
        ):
            assert pipe is not None  # noqa: S101  all three are pipes
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, events, handle)

    def run(self, deadline: float) -> None:
        """Until the process has ended, or has printed too much. TimeoutError at the deadline."""
        while self._process.poll() is None:
            if len(self.stdout) > limits.MAX_RAW_OUTPUT:
                return
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if self._listens:
                self._turn(min(left, _LOOK_SECONDS))
            else:
                self._wait(left)
        # What it wrote last. Others may still have the pipes and write on, so this is bounded.
        for _ in range(_LAST_TURNS):
            if not self._listens or not self._turn(0):
                break

    @property
    def _listens(self) -> bool:
        return bool(self._selector.get_map())

    def _wait(self, seconds: float) -> None:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError from error

    def _turn(self, seconds: float) -> bool:
        """Move what can be moved; whether there was anything."""
        ready = self._selector.select(seconds)
        for key, _ in ready:
            key.data(key.fileobj)
        return bool(ready)

    def _feed(self, stdin: IO[bytes]) -> None:
        try:
            written = os.write(stdin.fileno(), self._left[:_CHUNK])
        except BrokenPipeError:  # it does not care for the event
            written = len(self._left)
        self._left = self._left[written:]
        if not self._left:
            self._finish(stdin)

    def _hear(self, pipe: IO[bytes]) -> None:
        said = os.read(pipe.fileno(), _CHUNK)
        if not said:
            self._finish(pipe)
        elif pipe is self._process.stdout:
            self.stdout += said
        else:
            self.stderr += said
            del self.stderr[:-_MAX_STDERR]

    def _finish(self, pipe: Any) -> None:
        self._selector.unregister(pipe)
        pipe.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill all that is left of a command: what runs on could interfere with the next attempt."""
    kill_family(process.pid, running=process.poll() is None)
    process.wait()


def _ended(code: int) -> str:
    if code > 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _tail(stderr: bytearray) -> str:
    text = stderr.decode("utf-8", "replace").strip()[-_SHOWN_STDERR:]
    return f": {text}" if text else ""
