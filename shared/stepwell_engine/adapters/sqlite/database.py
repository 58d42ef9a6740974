"""One SQLite file for every store: connections, transactions, group commit."""

import contextlib
import sqlite3
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from stepwell_engine import limits
from stepwell_engine.adapters.sqlite.schema import (
    ADDED_COLUMNS,
    ADDED_TABLES,
    SCHEMA,
    UPGRADES,
    VERSION,
)
from stepwell_engine.errors import NewerFormat, NotWritten, StoreError, Unavailable, Unstorable

T = TypeVar("T")
Operation = Callable[[sqlite3.Connection], T]
Row = tuple[Any, ...]

OLDEST_SQLITE = (3, 37, 0)  # STRICT tables
BUSY_SECONDS = 10.0  # how long another process may hold the file that is opened
LOCKED_SECONDS = 5.0  # how long it may before a write is refused: two busy processes share it
CHECKPOINT_SECONDS = 5.0  # how long reads in progress may keep an overlong log from being emptied
LOOK_EVERY = 100  # transactions, after which the size of the log is looked at
RESTORE = "restore it from a backup, or name another data folder"
_MAGIC = b"SQLite format 3\x00"
_REASONS = {
    sqlite3.SQLITE_FULL: "disk full",
    sqlite3.SQLITE_BUSY: "the file is locked by another process",
    sqlite3.SQLITE_READONLY: "the file is read-only",
    sqlite3.SQLITE_IOERR: "the disk fails",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened",
}
_NOTHING_WRITTEN = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY})
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class _Pending:
    """An operation in line for the next transaction."""

    __slots__ = ("done", "error", "operation", "result")

    def __init__(self, operation: Operation[Any]) -> None:
        self.operation = operation
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None


class Database:
    """The file, opened or, if `create`, created. Several processes may have it open.

    Writes commit in groups: every operation that waits while a transaction is being written goes
    into the next one, so that many threads share one fsync and a single thread waits for nobody.

    Reads that overlap keep SQLite from using its log (WAL) again from the start. Above MAX_WAL
    reads that begin wait, for CHECKPOINT_SECONDS at most, until it is written back and emptied.

    Raises StoreError for a file that is damaged or not Stepwell's, NewerFormat for one of a newer
    version (left as it is), Unavailable if it cannot be opened, NotWritten if another process holds
    it or the disk is full.
    """

    def __init__(self, path: Path, create: bool = True) -> None:
        self._path = path
        self._create = create
        self._closed = False
        self._writing = threading.Lock()
        self._pending: deque[_Pending] = deque()
        self._idle: deque[sqlite3.Connection] = deque()
        self._log = path.with_name(f"{path.name}-wal")
        self._unseen = 0  # transactions since the size of the log was looked at
        self._unmoved = 0  # size of a log that could not be emptied
        self._may_read = threading.Event()
        self._may_read.set()
        self._writer = self._open()

    def write(self, operation: Operation[T]) -> T:
        """Run an operation in a transaction and return its result once that is on disk.

        It may run more than once (never twice with effect), so it must have no effect but on the
        rows that it writes through the connection. Whatever it raises, nothing of it stays, and
        the other operations of its group commit.
        """
        entry = _Pending(operation)
        self._pending.append(entry)
        with self._writing:
            if not entry.done:
                self._write_pending()
                self._limit_log()
        if entry.error is not None:
            raise entry.error
        result: T = entry.result
        return result

    def read(self, query: Operation[T]) -> T:
        """Run a query on one snapshot that contains everything committed before the call."""
        if not self._may_read.is_set():
            self._may_read.wait(CHECKPOINT_SECONDS)
        connection = self._reader()
        try:
            connection.execute("BEGIN")
            result = query(connection)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._translated(error) from error
        finally:
            _roll_back(connection)
            self._idle.append(connection)
            if self._closed:
                self._close_idle()
        return result

    def rows(self, sql: str, values: Row) -> list[Row]:
        """What one query finds."""
        return self.read(lambda connection: connection.execute(sql, values).fetchall())

    def row(self, sql: str, values: Row) -> Row | None:
        """The first row that one query finds, if any."""
        return next(iter(self.rows(sql, values)), None)

    def close(self) -> None:
        """Close every connection, whatever thread used it; a read in progress ends first."""
        with self._writing:
            self._closed = True
            self._writer.close()
        self._close_idle()

    # --- writing ------------------------------------------------------------------------------

    def _write_pending(self) -> None:
        batch = [self._pending.popleft() for _ in range(len(self._pending))]
        try:
            if not self._transact(batch):
                for entry in batch:
                    self._transact([entry])
        except BaseException:
            lost = Unavailable("the write was interrupted")
            for entry in batch:
                entry.error = entry.error or lost
            raise
        finally:
            for entry in batch:
                entry.done = True

    def _transact(self, batch: list[_Pending]) -> bool:
        """All in one transaction; False, and nothing happened, if they must go one by one."""
        connection = self._writer
        try:
            if self._closed:
                raise Unavailable(f"{self._path} is closed")
            _roll_back(connection)
            connection.execute("BEGIN IMMEDIATE")
        except (sqlite3.Error, Unavailable) as error:
            self._fail(batch, error)
            return True
        for entry in batch:
            rows = connection.total_changes
            try:
                entry.result = entry.operation(connection)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is its caller's
                self._fail([entry], error)
                # Ends the statements it left unfinished: only then are their rows counted.
                traceback.clear_frames(error.__traceback__)
                # An error of SQLite's own may have ended the transaction as well.
                if isinstance(error, sqlite3.Error) or connection.total_changes != rows:
                    _roll_back(connection)
                    if len(batch) == 1:
                        return True
                    for other in batch:
                        other.error = None
                    return False
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            _roll_back(connection)
            self._fail(batch, error)
        return True

    def _fail(self, batch: list[_Pending], error: Exception) -> None:
        translated = self._translated(error)
        if translated is not error:
            translated.__cause__ = error
        for entry in batch:
            entry.error = translated

    def _limit_log(self) -> None:
        """Empty a log above MAX_WAL; one that a long read keeps, when it has grown by that much."""
        self._unseen += 1
        if self._unseen < LOOK_EVERY:
            return
        self._unseen = 0
        try:
            size = self._log.stat().st_size
        except OSError:
            return
        if size <= self._unmoved + limits.MAX_WAL:
            return
        self._may_read.clear()
        try:
            self._unmoved = 0 if _empty_log(self._writer) else size
        finally:
            self._may_read.set()

    # --- connections --------------------------------------------------------------------------

    def _reader(self) -> sqlite3.Connection:
        if self._closed:
            raise Unavailable(f"{self._path} is closed")
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def _close_idle(self) -> None:
        while self._idle:
            try:
                self._idle.pop().close()
            except IndexError:
                return

    def _connect(self, prepare: Operation[Any] | None = None) -> sqlite3.Connection:
        """A connection, made ready by `prepare`; if that fails, closed again."""
        try:
            connection = sqlite3.connect(
                self._path,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                connection.execute("PRAGMA synchronous = FULL")  # reads the file, and may refuse it
                if prepare is not None:
                    prepare(connection)
                _be_patient(connection, LOCKED_SECONDS)
            except BaseException:
                connection.close()
                raise
        except sqlite3.Error as error:
            raise self._translated(error) from error
        return connection

    def _open(self) -> sqlite3.Connection:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            wanted = ".".join(map(str, OLDEST_SQLITE))
            raise StoreError(
                f"this Python has SQLite {sqlite3.sqlite_version}, Stepwell needs {wanted} or newer"
            )
        self._check_start()
        return self._connect(self._prepare)

    def _check_start(self) -> None:
        """Refuse a file of another kind. SQLite would take a very short one for an empty one."""
        try:
            with self._path.open("rb") as file:
                start = file.read(len(_MAGIC))
        except FileNotFoundError:
            return
        except OSError as error:
            raise Unavailable(f"{self._path}: {error.strerror}") from error
        if start not in (b"", _MAGIC):
            raise self._unreadable("it begins otherwise")

    def _unreadable(self, reason: object) -> StoreError:
        text = f"{self._path} is not a readable SQLite database ({reason}): {RESTORE}"
        return StoreError(text, "the file is damaged")

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Create the tables in a new file; check an existing one, and upgrade an older one."""
        if _version(connection) == 0:
            if not self._create:
                raise StoreError(f"{self._path} holds nothing of Stepwell's: {RESTORE}")
            _use_wal(connection)
            connection.execute("BEGIN IMMEDIATE")
            if _version(connection) == 0:  # no other process was faster
                if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                    raise StoreError(
                        f"{self._path} holds the tables of another program: "
                        "name a data folder of Stepwell's own, or one that does not exist yet"
                    )
                for statement in SCHEMA:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
        found = _version(connection)
        if found > VERSION:
            raise NewerFormat(str(self._path), found, VERSION)
        if found < VERSION:
            connection.execute("BEGIN IMMEDIATE")
            for version in range(_version(connection) + 1, VERSION + 1):
                for statement in UPGRADES[version]:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version}")
            connection.execute("COMMIT")
        if _lacks(connection):
            connection.execute("BEGIN IMMEDIATE")
            for statement in (*ADDED_TABLES, *_lacks(connection)):
                connection.execute(statement)
            connection.execute("COMMIT")

    def _translated(self, error: Exception) -> Exception:
        if not isinstance(error, sqlite3.DatabaseError):
            return error
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
            return self._unreadable(error)
        if isinstance(error, sqlite3.OperationalError):
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            reason = _REASONS.get(
                code, f"SQLite answers {getattr(error, 'sqlite_errorname', error)}"
            )
            refused = NotWritten if code in _NOTHING_WRITTEN else Unavailable
            return refused(f"{self._path}: {error}", reason)
        if isinstance(error, sqlite3.DataError):
            return Unstorable(f"{self._path}: {error}")
        return error


def _be_patient(connection: sqlite3.Connection, seconds: float) -> None:
    """Wait so long for a lock of others."""
    connection.execute(f"PRAGMA busy_timeout = {seconds * 1000:.0f}")


def _version(connection: sqlite3.Connection) -> int:
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found


def _lacks(connection: sqlite3.Connection) -> list[str]:
    """What adds the columns that came without a new VERSION, unless they are there."""
    return [
        f"ALTER TABLE {table} ADD COLUMN {column} {kind}"
        for table, column, kind in ADDED_COLUMNS
        if column not in {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    ]


def _empty_log(connection: sqlite3.Connection) -> bool:
    """Write the log back and truncate it; False if reads prevent it for CHECKPOINT_SECONDS."""
    try:
        _be_patient(connection, CHECKPOINT_SECONDS)
        try:
            busy: int = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            _be_patient(connection, LOCKED_SECONDS)
    except sqlite3.Error:  # what was committed is safe: the next write says what is wrong
        return False
    return not busy


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL. SQLite does not wait here while another process does the same."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _roll_back(connection: sqlite3.Connection) -> None:
    """End a transaction that is still open. If even that fails, the next BEGIN says so."""
    if connection.in_transaction:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
