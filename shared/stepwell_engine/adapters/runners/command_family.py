"""What a command has started: its process group, and the descendants outside of it.

Run as a program, this is the watcher of a host's commands: when the host ends, it kills those that
still run. It reads from stdin, which only the host can write to, so its end is the host's end.
"""

import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress

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
    """Read `+pid` for each command that begins, `-pid` for each that has ended."""
    running: set[int] = set()
    for line in lines:
        pid = int(line[1:])
        if line[0] == "+":
            running.add(pid)
        else:
            running.discard(pid)
    for pid in running:
        kill_family(pid, running=True)


if __name__ == "__main__":
    _watch(sys.stdin)
