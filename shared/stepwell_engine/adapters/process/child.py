"""The child process of an isolated attempt: its end of the pipes, and its bonds to its host."""

import ctypes
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from stepwell_engine.core.run.attempt import Attempt, Outcome

BEGUN: Final = b"+"  # said right before the attempt
NOT_BEGUN: Final = b"-"  # said before an outcome otherwise
SIZE: Final = 8  # bytes of a length
_PR_SET_PDEATHSIG: Final = 1
_FIRST_TO_END: Final = "1000"


def serve(run: Callable[[Attempt, Any, Callable[[], None]], Outcome]) -> None:
    """Take the job that the host sends, `run` it, answer, and end.

    `run` gets the attempt, what the host sent beside it, and what to call right before it tries.
    """
    answers, host = int(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(answers, False)
    _die_with(host)
    _end_first()
    attempt, job = _job()

    def say(words: bytes) -> None:
        while words:
            words = words[os.write(answers, words) :]

    begun = False

    def begin() -> None:
        nonlocal begun
        begun = True
        say(BEGUN)

    outcome = pickle.dumps(run(attempt, job, begin))
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # it was closed
            stream.flush()
    if not begun:
        say(NOT_BEGUN)
    say(len(outcome).to_bytes(SIZE, "big") + outcome)
    os._exit(0)  # whatever threads the function has left


def _die_with(host: int) -> None:
    """End when the host does, by the kernel's doing where it can: a function may block all else."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != host:
        os._exit(1)


def _end_first() -> None:
    """Be the first that the kernel ends for want of memory."""
    with suppress(OSError):  # only Linux has it
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_END)


def _job() -> tuple[Attempt, Any]:
    """Read the job; from then on stdin is empty, and the end of the pipe ends this process."""
    with os.fdopen(os.dup(0), "rb") as pipe:
        size = int.from_bytes(pipe.read(SIZE), "big")
        found: tuple[Attempt, Any] = pickle.loads(pipe.read(size))  # noqa: S301  our host's
    bond = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    threading.Thread(target=_end_with, args=(bond,), name="host", daemon=True).start()
    return found


def _end_with(bond: int) -> None:
    os.read(bond, 1)  # nothing comes but the end
    os.killpg(0, signal.SIGKILL)
