"""The lock of a data folder: one host each."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FolderInUse(Exception):
    """Another process holds the folder; `pid` is its id, None if it cannot be found."""

    def __init__(self, folder: Path, pid: int | None) -> None:
        who = "another process" if pid is None else f"the process with id {pid}"
        super().__init__(f"the data folder {folder} is in use by {who}: stop it, or name another")
        self.pid = pid


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; the kernel lets go of it when this process dies.

    FolderInUse if another process holds it; OSError if the file cannot be written.
    """
    path = folder / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FolderInUse(folder, _holder(path)) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _holder(path: Path) -> int | None:
    """The process that the file names, if that has it open; else another that has."""
    named, openers = _named(path), _openers(path)
    if openers is None or named in openers:
        return named
    return min(openers - {os.getpid()}, default=None)


def _named(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except ValueError:  # the holder has not written it yet
        return None


def _openers(path: Path) -> set[int] | None:
    """The processes that have the file open; None where the system does not tell."""
    if not Path("/proc/self/fd").is_dir():
        return None
    wanted = path.stat()
    found: set[int] = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.path.samestat(wanted, one.stat()) for one in (process / "fd").iterdir()):
                found.add(int(process.name))
        except OSError:  # it has ended, or is another user's
            continue
    return found
