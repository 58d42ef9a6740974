"""What the disk costs: figures to read the others by."""

import os
import sqlite3
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

RECORD = b"x" * 200


def fsync_ms(folder: Path, count: int) -> float:
    """The median of `count` small appends, each with an fsync."""
    file = os.open(folder / "fsync", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:

        def append() -> None:
            os.write(file, RECORD)
            os.fsync(file)

        return _median_ms(append, count)
    finally:
        os.close(file)


def commit_ms(folder: Path, count: int) -> float:
    """The median of `count` SQLite commits of one small row: WAL, synchronous = FULL."""
    with closing(sqlite3.connect(folder / "commit.sqlite", isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("CREATE TABLE records (data BLOB)")
        return _median_ms(
            lambda: database.execute("INSERT INTO records VALUES (?)", (RECORD,)), count
        )


def _median_ms(attempt: Callable[[], object], count: int) -> float:
    took = []
    for _ in range(count):
        began = time.perf_counter()
        attempt()
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1000
