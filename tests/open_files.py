"""What this process has open, and connections to SQLite that tell of having been left open."""

import os
import sqlite3
import sys
import warnings
from functools import partial
from pathlib import Path


def open_in(folder: Path) -> list[str]:
    """The files in a folder that this process has open, by name, each as often as it is open."""
    names = {_identity(file.stat()): file.name for file in folder.iterdir()}
    found = []
    for descriptor in list(Path("/dev/fd").iterdir()):
        try:
            found.append(names[_identity(os.fstat(int(descriptor.name)))])
        except (OSError, KeyError):  # the one that lists; a file elsewhere
            continue
    return sorted(found)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


class _Watched(sqlite3.Connection):
    def __del__(self) -> None:
        try:
            self.total_changes  # noqa: B018  refused once it is closed
        except sqlite3.ProgrammingError:
            return
        warnings.warn(f"unclosed database in {self!r}", ResourceWarning, 2, source=self)


def watch_connections() -> None:
    """Warn of a connection that nobody closed, as Python 3.13 does by itself."""
    if sys.version_info < (3, 13):
        sqlite3.connect = partial(  # type: ignore[assignment]
            sqlite3.connect, factory=_Watched
        )
