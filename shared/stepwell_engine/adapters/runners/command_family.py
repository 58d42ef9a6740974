"""What a command has started: its process group, and the descendants outside of it.

Run as a program, this is the watcher of a host's commands: when the host ends, it kills those that
still run. It reads from stdin, which only the host can write to, so its end is the host's end.
"""

import os
import signal
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil


def kill_family(pid: int, running: bool) -> None:
    """Kill the process group of a program.

    If the program is `running`, its descendants outside the group are killed too.
    """
    family = _stopped_family(pid) if running else set()
    # The group is empty; or, on macOS, nobody in it is still alive.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for member in family:
        with suppress(psutil.Error):
            member.kill()


def _stopped_family(pid: int) -> set[psutil.Process]:
    """A program and its descendants. All are stopped, so that none can start another."""
    family: set[psutil.Process] = set()
    with suppress(psutil.Error, OSError):  # it has ended; the host is short of descriptors
        program = psutil.Process(pid)
        found = {program}
        while found:
            for member in found:
                with suppress(psutil.Error):
                    member.suspend()
            family |= found
            found = set(program.children(recursive=True)) - family
    return family


def _watch(lines: Iterable[str]) -> None:
    """Read `? number stdin` for a command about to start, with the inode of the pipe that will be
    its stdin, `+ number pid` once it has, and `- number` when it has ended.
    """
    starting: dict[str, int] = {}
    running: dict[str, int] = {}
    for line in lines:
        match line.split():
            case "?", number, stdin:
                starting[number] = int(stdin)
            case "+", number, pid:
                running[number] = int(pid)
            case _, number:
                starting.pop(number, None)
                running.pop(number, None)
    left = set(running.values())
    untold = {stdin for number, stdin in starting.items() if number not in running}
    if untold:
        left |= _leaders_with(untold)
    for program in left:
        kill_family(program, running=True)


def _leaders_with(stdins: set[int]) -> set[int]:
    """The programs, each in a session of its own, with these pipes as stdin. None on macOS."""
    found = set()
    for pid in psutil.pids():
        with suppress(OSError):  # it has ended, is another user's, or there is no /proc
            stdin = Path(f"/proc/{pid}/fd/0").stat()
            if stat.S_ISFIFO(stdin.st_mode) and stdin.st_ino in stdins and os.getsid(pid) == pid:
                found.add(pid)
    return found


if __name__ == "__main__":
    _watch(sys.stdin)
