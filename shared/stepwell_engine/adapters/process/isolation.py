"""Attempts in a child process each, whose end their host survives.

The child is a fresh interpreter, not a fork: the host has threads. It gets its job on stdin, which
stays open as long as the host lives, and answers on a pipe of its own: what it runs may print.
"""

import os
import pickle
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import IO, Final

from stepwell_engine.adapters.process.child import BEGUN, SIZE
from stepwell_engine.adapters.process.line import Line
from stepwell_engine.adapters.runners.attempts import deferred, timed_out
from stepwell_engine.adapters.runners.deadline import Deadline
from stepwell_engine.core.run.attempt import Attempt, Deferred, Outcome, WorkerLost
from stepwell_engine.core.values.subject import Subject
from stepwell_engine.limits import SECOND
from stepwell_engine.ports import Clock

_GRACE: Final = 1.0  # seconds for the child to tell by itself that time is over: within the margin
_LAST_WORDS: Final = 5.0  # seconds that a child may take to end after it has told its outcome
_LOOK: Final = 0.05  # seconds: forks of the child may keep its pipe open after its end
_CHUNK: Final = 1 << 16

Job = Callable[[Attempt, Deadline], object]


class ProcessIsolation:
    """The Isolation port: one child at a time, which ends with this process."""

    def __init__(self, program: Sequence[str], job: Job, clock: Clock) -> None:
        """`program` starts the child, and gets two arguments: the descriptor to answer on, and this
        process's id. `job` makes what the child is handed beside the attempt, or the outcome if
        that fails; it can be pickled.
        """
        self._program = program
        self._job = job
        self._clock = clock
        self._line = Line()
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._closed = False

    def enter(self, run: Subject) -> bool:
        """Take the place, or stand in line."""
        return self._line.enter(run)

    def leave(self) -> Subject | None:
        """Give the place back; whose turn it is."""
        return self._line.leave()

    def turn(self) -> Subject | None:
        """Whose turn it is."""
        return self._line.turn()

    def forget(self, run: Subject) -> Subject | None:
        """A run does not come; whose turn it is, if it was its turn."""
        return self._line.forget(run)

    def run(self, attempt: Attempt) -> Outcome:
        """Run once. Deferred unless the child has begun; WorkerLost if it then ends by itself."""
        deadline = Deadline.of(attempt, self._clock)
        until = time.monotonic() + self._left(attempt)
        job = self._job(attempt, deadline)
        if isinstance(job, Deferred):
            return job
        with ExitStack() as opened:
            try:
                selector = opened.enter_context(selectors.DefaultSelector())
                reader, writer = os.pipe()
                answers = opened.enter_context(os.fdopen(reader, "rb", buffering=0))
                answering = opened.enter_context(os.fdopen(writer, "wb", buffering=0))
                child = self._start(writer)
            except OSError as error:
                reason = error.strerror or error
                return Deferred(f"the process that runs this step alone cannot start: {reason}")
            if child is None:
                return Deferred("the host stops")
            opened.enter_context(child)
            opened.callback(self._end, child)
            answering.close()
            talk = _Talk(child, answers, selector, pickle.dumps((attempt, job)), attempt.timeout)
            try:
                answer = talk.run(until)
            except TimeoutError:
                if not talk.begun:
                    return deferred(deadline)
                return timed_out("the step, alone in its process,", deadline)
        return self._outcome(child.returncode, answer, talk.begun)

    def close(self) -> None:
        """End the child in progress, and start none any more: attempts are deferred."""
        with self._lock:
            self._closed = True
            if self._child is not None:
                _kill(self._child)

    def _left(self, attempt: Attempt) -> float:
        ends = attempt.deadline
        left = attempt.timeout if ends is None else ends - self._clock.now()
        return left / SECOND

    def _start(self, writer: int) -> "subprocess.Popen[bytes] | None":
        with self._lock:
            if self._closed:
                return None
            self._child = subprocess.Popen(
                [*self._program, str(writer), str(os.getpid())],
                stdin=subprocess.PIPE,
                pass_fds=(writer,),
                start_new_session=True,  # a Ctrl-C for the host is not for it
            )
            return self._child

    def _end(self, child: "subprocess.Popen[bytes]") -> None:
        """Reap the child. One that has told its outcome ends by itself, any other is killed."""
        with self._lock:
            self._child = None
        _kill(child)

    def _outcome(self, code: int, answer: bytes | None, begun: bool) -> Outcome:
        if answer is not None:
            outcome: Outcome = pickle.loads(answer)  # noqa: S301  from a process of our own
            return outcome
        if self._closed:
            return Deferred("the host stops")
        if not begun:
            return Deferred(f"the process that runs this step alone did not start: {_ended(code)}")
        return WorkerLost(f"the process in which the step ran alone ended: {_ended(code)}")


class _Talk:
    """Hands the child its job and collects its answer."""

    def __init__(
        self,
        child: "subprocess.Popen[bytes]",
        answers: IO[bytes],
        selector: selectors.BaseSelector,
        job: bytes,
        timeout: int,
    ) -> None:
        self._child = child
        self._answers = answers
        self._selector = selector
        self._left = memoryview(len(job).to_bytes(SIZE, "big") + job)
        self._timeout = timeout
        self._said = bytearray()
        self.begun = False
        assert child.stdin is not None  # noqa: S101  it is a pipe
        self._stdin = child.stdin.fileno()
        os.set_blocking(self._stdin, False)
        os.set_blocking(answers.fileno(), False)
        selector.register(self._stdin, selectors.EVENT_WRITE, self._feed)
        selector.register(answers, selectors.EVENT_READ, self._hear)

    def run(self, until: float) -> bytes | None:
        """The answer; None if the child ended without. TimeoutError for one that takes longer."""
        until += _GRACE
        while (answer := self._answer()) is None:
            ended = self._child.poll() is not None
            heard = self._turn(0 if ended else min(_LOOK, max(0, until - time.monotonic())))
            if not self.begun and self._said.startswith(BEGUN):
                self.begun = True
                until = min(until, time.monotonic() + self._timeout / SECOND + _GRACE)
            if ended and not heard:
                return None
            if time.monotonic() > until:
                raise TimeoutError
        with suppress(subprocess.TimeoutExpired):  # then it is killed
            self._child.wait(_LAST_WORDS)
        return answer

    def _answer(self) -> bytes | None:
        start = len(BEGUN) + SIZE
        if len(self._said) < start:
            return None
        size = int.from_bytes(self._said[len(BEGUN) : start], "big")
        return bytes(self._said[start:]) if len(self._said) == start + size else None

    def _turn(self, seconds: float) -> bool:
        """Move what can be moved; whether anything was heard."""
        before = len(self._said)
        if not self._selector.get_map():
            time.sleep(seconds)
        for key, _ in self._selector.select(seconds):
            key.data()
        return len(self._said) > before

    def _feed(self) -> None:
        try:
            written = os.write(self._stdin, self._left[:_CHUNK])
        except BrokenPipeError:  # it has ended
            written = len(self._left)
        self._left = self._left[written:]
        if not self._left:
            self._selector.unregister(self._stdin)

    def _hear(self) -> None:
        said = os.read(self._answers.fileno(), _CHUNK)
        self._said += said
        if not said:
            self._selector.unregister(self._answers)


def _kill(child: "subprocess.Popen[bytes]") -> None:
    """Kill a child with its descendants; one that has ended by itself may have left some."""
    from stepwell_engine.adapters.runners.command_family import kill_family  # noqa: PLC0415

    if child.poll() is None:
        kill_family(child.pid, running=True)
        child.wait()
    elif child.returncode:
        kill_family(child.pid, running=False)


def _ended(code: int) -> str:
    if code >= 0:
        return f"exit status {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
