"""A project's queues in SQLite."""

import re
import sqlite3
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from stepwell_engine.adapters.sqlite.database import Database
from stepwell_engine.core.values.units import EpochMs, Ms, ProjectRef
from stepwell_engine.errors import NewerFormat, QueueNotFound
from stepwell_engine.limits import FORMAT
from stepwell_engine.ports import Message

_FIND: Final = """
    SELECT number, visibility, max_receives, format FROM queues
    WHERE project = ? AND queue = ? AND NOT dropped"""
_CREATE: Final = """
    INSERT INTO queues (project, queue, visibility, max_receives, last_id, dropped, format)
    VALUES (?, ?, ?, ?, 0, FALSE, ?)
    ON CONFLICT (project, queue) DO UPDATE SET visibility = excluded.visibility,
        max_receives = excluded.max_receives, dropped = FALSE, format = excluded.format"""
_DROP: Final = "UPDATE queues SET dropped = TRUE WHERE number = ?"
_DROP_MESSAGES: Final = "DELETE FROM messages WHERE queue = ?"
_NEXT_ID: Final = "UPDATE queues SET last_id = last_id + 1 WHERE number = ? RETURNING last_id"
_SEND: Final = """
    INSERT INTO messages (queue, archived, id, sent_at, receives, visible_at, body)
    VALUES (?, FALSE, ?, ?, 0, ?, ?)"""
_VISIBLE: Final = """
    SELECT id, body, sent_at, receives FROM messages
    WHERE queue = ? AND archived = FALSE AND id > ? AND visible_at <= ? ORDER BY id LIMIT ?"""
_TAKE: Final = """
    UPDATE messages SET receives = ?, visible_at = ?
    WHERE queue = ? AND archived = FALSE AND id = ?"""
_ARCHIVE: Final = """
    UPDATE messages SET archived = TRUE WHERE queue = ? AND archived = FALSE AND id = ?"""
_REMOVE: Final = """
    DELETE FROM messages WHERE queue = ? AND archived = FALSE AND id = ? AND receives = ?"""
_PEEK: Final = """
    SELECT id, body, sent_at, receives, '', visible_at FROM messages
    WHERE queue = ? AND archived = ? AND id > ? ORDER BY id LIMIT ?"""

# A receipt is the message's id and how often it was received: the next receive outdates it.
_RECEIPT: Final = re.compile(r"([1-9][0-9]{0,17})\.([1-9][0-9]{0,17})")


class _Queue(NamedTuple):
    number: int
    visibility: Ms
    max_receives: int
    format: int


class SqliteQueues:
    """The Queues port on a Database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, project: ProjectRef, queue: str, visibility: Ms, max_receives: int) -> None:
        """Create a queue, or change its settings."""

        def operation(connection: sqlite3.Connection) -> None:
            _find(connection, project, queue)
            values = (project, queue, visibility, max_receives, FORMAT)
            connection.execute(_CREATE, values)

        self._database.write(operation)

    def delete(self, project: ProjectRef, queue: str) -> None:
        """Delete a queue with everything in it."""

        def operation(connection: sqlite3.Connection) -> None:
            found = _existing(connection, project, queue)
            connection.execute(_DROP, (found.number,))
            connection.execute(_DROP_MESSAGES, (found.number,))

        self._database.write(operation)

    def send(
        self,
        project: ProjectRef,
        queue: str,
        body: bytes,
        now: EpochMs,
        within: Ms | None = None,  # noqa: ARG002
    ) -> int:
        """Append a message. Who would take over the run that sends it waits in the same line."""

        def operation(connection: sqlite3.Connection) -> int:
            found = _existing(connection, project, queue)
            number: int = connection.execute(_NEXT_ID, (found.number,)).fetchone()[0]
            connection.execute(_SEND, (found.number, number, now, now, body))
            return number

        return self._database.write(operation)

    def receive(
        self, project: ProjectRef, queue: str, limit: int, now: EpochMs
    ) -> Sequence[Message]:
        """Take up to `limit` visible messages; exhausted ones move to the archive."""

        def anything(connection: sqlite3.Connection) -> Any:
            found = _existing(connection, project, queue)
            return connection.execute(_VISIBLE, (found.number, 0, now, 1)).fetchone()

        def operation(connection: sqlite3.Connection) -> Sequence[Message]:
            found = _existing(connection, project, queue)
            return _take(connection, found, limit, now)

        # An empty queue is asked often; it costs no transaction.
        return self._database.write(operation) if self._database.read(anything) else ()

    def delete_message(self, project: ProjectRef, queue: str, receipt: str) -> bool:
        """Delete a received message, by its newest receipt only."""
        parts = _RECEIPT.fullmatch(receipt)

        def operation(connection: sqlite3.Connection) -> bool:
            found = _existing(connection, project, queue)
            if parts is None:
                return False
            values = (found.number, int(parts[1]), int(parts[2]))
            return connection.execute(_REMOVE, values).rowcount > 0

        return self._database.write(operation)

    def peek(
        self, project: ProjectRef, queue: str, after: int | str | None, limit: int, archived: bool
    ) -> Sequence[Message]:
        """List messages with ids above `after`, by id."""

        def query(connection: sqlite3.Connection) -> Sequence[Message]:
            found = _existing(connection, project, queue)
            values = (found.number, archived, int(after or 0), limit)
            return [Message(*row) for row in connection.execute(_PEEK, values)]

        return self._database.read(query)


def _find(connection: sqlite3.Connection, project: ProjectRef, queue: str) -> _Queue | None:
    row = connection.execute(_FIND, (project, queue)).fetchone()
    if row is None:
        return None
    found = _Queue(*row)
    if found.format > FORMAT:
        raise NewerFormat(f"queue {queue} of project {project}", found.format, FORMAT)
    return found


def _existing(connection: sqlite3.Connection, project: ProjectRef, queue: str) -> _Queue:
    found = _find(connection, project, queue)
    if found is None:
        raise QueueNotFound(queue)
    return found


def _take(connection: sqlite3.Connection, queue: _Queue, limit: int, now: EpochMs) -> list[Message]:
    taken: list[Message] = []
    last = 0
    until = now + queue.visibility
    while wanted := limit - len(taken):
        rows = connection.execute(_VISIBLE, (queue.number, last, now, wanted)).fetchall()
        if not rows:
            break
        for number, body, sent_at, before in rows:
            last = number
            if before >= queue.max_receives:
                connection.execute(_ARCHIVE, (queue.number, number))
                continue
            receives = before + 1
            connection.execute(_TAKE, (receives, until, queue.number, number))
            receipt = f"{number}.{receives}"
            taken.append(Message(number, body, sent_at, receives, receipt, until))
    return taken
