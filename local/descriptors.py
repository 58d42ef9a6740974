"""The file descriptors of the host: how many it may have, and whose they are."""

import os
import resource
import signal
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

MOST: Final = 65_536  # more than any host needs; some programs loop over all that they may have

Address = tuple[str, int]


def allow_many() -> int:
    """Raise the limit of this process as far as it may; how many it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return MOST if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError):  # the system has a limit beside
        return soft
    return wanted


def keep_from_children(folder: Path, address: Address) -> None:
    """Close the files in the folder and the host's sockets in whatever a function forks.

    A child that outlives the host would keep its lock, its database and its port. Signals end the
    child again, as by default.
    """
    os.register_at_fork(after_in_child=_let_go(folder.absolute(), address))


def _let_go(folder: Path, address: Address) -> Callable[[], None]:
    def let_go() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        files = {_identity(file.stat()) for file in folder.iterdir() if file.is_file()}
        null = os.open(os.devnull, os.O_RDWR)
        for entry in list(Path("/dev/fd").iterdir()):
            descriptor = int(entry.name)
            try:
                found = os.fstat(descriptor)
            except OSError:  # the one that lists
                continue
            mine = _identity(found) in files
            if mine or (stat.S_ISSOCK(found.st_mode) and _address(descriptor) == address):
                # Not closed: objects that are left believe in the number.
                os.dup2(null, descriptor, inheritable=False)
        os.close(null)

    return let_go


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _address(descriptor: int) -> object:
    with socket.socket(fileno=os.dup(descriptor)) as sock:
        try:
            return sock.getsockname()
        except OSError:
            return None
