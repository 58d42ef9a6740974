"""The lock of a data folder: one host each."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class FolderInUse(Exception):
    """Another process has locked the folder; `pid` is its id, None if it cannot be found."""

    def __init__(self, folder: Path, pid: int | None) -> None:
        who = "another process" if pid is None else f"the process with id {pid}"
        super().__init__(f"the data folder {folder} is in use by {who}: stop it, or name another")
        self.pid = pid


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep the folder locked; the kernel releases the lock when this process dies.

    FolderInUse if another process has it; OSError if the file cannot be written.
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
    openers = _openers(path)
    named = _named(path)
    return named if named in openers else min(openers - {os.getpid()}, default=None)


def _named(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except ValueError:  # the holder has not written it yet
        return None


def _openers(path: Path) -> set[int]:
    """The processes that have the file open, as far as they may be asked."""
    import psutil  # noqa: PLC0415  only a host that cannot start needs it

    found: set[int] = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # it has ended, or is another user's
            if any(path.samefile(one.path) for one in process.open_files()):
                found.add(process.pid)
    return found
