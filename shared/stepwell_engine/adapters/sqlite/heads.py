"""A run's head as a row of SQLite, and back."""

import sqlite3
from collections.abc import Collection, Sequence
from types import MappingProxyType
from typing import Final

from stepwell_engine.adapters.sqlite.database import Row
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind
from stepwell_engine.core.run.status import LIVE, STOPPED, Status
from stepwell_engine.core.values.units import RunId
from stepwell_engine.errors import NewerFormat
from stepwell_engine.limits import RUN_FORMAT
from stepwell_engine.ports import Done, Refused, Written

COLUMNS: Final = (  # in the order of Head
    "run_id, project, workflow, version, created_at, status, ended_at, ready_at, wake_at, token, "
    "until, claimed_at, revision, commits, lost, journal, mails, input, idempotency_key, test, "
    "parent, depth, owes, cascade, format, overflow_last, overflow_count, wants, wants_seq, "
    "alone, alone_losses, deadline, generation, told"
)
_STATUS: Final = 5  # places in COLUMNS
_INBOX: Final = 16
_TEST: Final = 19
_NOTIFY_PENDING: Final = 22
_CASCADE: Final = 23
_FORMAT: Final = 24
_ALONE: Final = 29
_TOLD: Final = 33
_STATUSES: Final = {status.value: status for status in Status}
_NO_MESSAGES: Final = MappingProxyType[str, InboxMessage]({})


def one_of(statuses: Collection[Status]) -> str:
    """The condition that a run has one of these statuses."""
    return f"status IN ({', '.join(sorted(repr(status.value) for status in statuses))})"


IS_LIVE: Final = one_of(LIVE)
IS_STOPPED: Final = one_of(STOPPED)
READABLE: Final = f"format <= {RUN_FORMAT}"
RETURNING: Final = f"RETURNING {COLUMNS}"

# Texts are put together from the constants above alone; values are always bound.
# ruff: noqa: S608
_SELECT: Final = f"SELECT {COLUMNS} FROM heads WHERE run_id = ?"
_SELECT_INBOX: Final = (
    "SELECT id, kind, name, at, body, blob FROM mail WHERE run_id = ? ORDER BY rowid"
)
INSERT: Final = (
    f"INSERT INTO heads ({COLUMNS}) VALUES ({', '.join('?' * 34)}) ON CONFLICT DO NOTHING"
)
_PUT_BLOB: Final = "INSERT OR REPLACE INTO blobs (run_id, name, data) VALUES (?, ?, ?)"
_PUT_MESSAGE: Final = (
    "INSERT INTO mail (run_id, id, kind, name, at, body, blob) VALUES (?, ?, ?, ?, ?, ?, ?)"
)


def row_of(head: Head) -> Row:
    """The values of COLUMNS."""
    return (
        head.run_id,
        head.project,
        head.workflow,
        head.version,
        head.created_at,
        head.status.value,
        head.ended_at,
        head.ready_at,
        head.wake_at,
        head.lease_token,
        head.lease_expires_at,
        head.claimed_at,
        head.inbox_seq,
        head.commit_seq,
        head.lost_leases,
        head.journal,
        len(head.inbox),
        head.input,
        head.idempotency_key,
        head.test,
        head.parent,
        head.depth,
        head.notify_pending,
        head.cascade,
        head.format,
        head.overflow_last,
        head.overflow_count,
        head.wants,
        head.wants_seq,
        head.alone,
        head.alone_losses,
        head.deadline,
        head.generation,
        head.told,
    )


def head_of(connection: sqlite3.Connection, row: Row) -> Head:
    """The head with its messages. NewerFormat, before anything else of it is read."""
    if row[_FORMAT] > RUN_FORMAT:
        raise NewerFormat(f"run {row[0]}", row[_FORMAT], RUN_FORMAT)
    values = list(row)
    values[_STATUS] = _STATUSES[row[_STATUS]]
    values[_INBOX] = _inbox(connection, row[0]) if row[_INBOX] else _NO_MESSAGES
    values[_TEST] = bool(row[_TEST])
    values[_NOTIFY_PENDING] = bool(row[_NOTIFY_PENDING])
    values[_CASCADE] = bool(row[_CASCADE])
    values[_ALONE] = bool(row[_ALONE])
    values[_TOLD] = bool(row[_TOLD])
    return Head(*values)


def _inbox(connection: sqlite3.Connection, run_id: RunId) -> MappingProxyType[str, InboxMessage]:
    rows = connection.execute(_SELECT_INBOX, (run_id,)).fetchall()
    return MappingProxyType({row[0]: InboxMessage(MessageKind(row[1]), *row[2:]) for row in rows})


def find(connection: sqlite3.Connection, run_id: RunId) -> Head | None:
    """The head as it stands."""
    row = connection.execute(_SELECT, (run_id,)).fetchone()
    return None if row is None else head_of(connection, row)


def update(connection: sqlite3.Connection, sql: str, values: Row, run_id: RunId) -> Written:
    """The head after an update that returns it, or as it stands."""
    row = connection.execute(sql, values).fetchone()
    return Refused(find(connection, run_id)) if row is None else Done(head_of(connection, row))


def put_message(
    connection: sqlite3.Connection, run_id: RunId, message_id: str, message: InboxMessage
) -> None:
    """Put a message into the head."""
    values = (
        run_id,
        message_id,
        message.kind,
        message.name,
        message.at,
        message.body,
        message.blob,
    )
    connection.execute(_PUT_MESSAGE, values)


def put_blobs(connection: sqlite3.Connection, run_id: RunId, blobs: Sequence[Blob]) -> None:
    """Put blobs, in place of earlier ones of their names."""
    for blob in blobs:
        connection.execute(_PUT_BLOB, (run_id, blob.name, blob.data))
