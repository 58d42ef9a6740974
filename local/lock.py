"""The lock of a data folder: one host each."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FolderInUse(Exception):
    """Another host holds the folder; `pid` is its process, None if it cannot be read."""

    def __init__(self, folder: Path, pid: int | None) -> None:
        who = "another host" if pid is None else f"the host with process id {pid}"
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
            raise FolderInUse(folder, _pid(path)) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _pid(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except ValueError:  # the holder has not written it yet
        return None
