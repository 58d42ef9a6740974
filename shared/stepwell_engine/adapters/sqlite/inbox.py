"""The inboxes of runs in SQLite: the steps of a delivery, all in one transaction."""

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Final

from stepwell_engine import limits
from stepwell_engine.adapters.delivery import KeyEntry
from stepwell_engine.adapters.sqlite.heads import (
    IS_LIVE,
    READABLE,
    RETURNING,
    find,
    put_message,
    update,
)
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind, Slot
from stepwell_engine.core.values.units import EpochMs, RunId
from stepwell_engine.limits import RUN_FORMAT
from stepwell_engine.ports import Done, Written

_WAKE: Final = "ready_at = 0, wake_at = ?, "
_WAKES_FOR: Final = "token IS NULL AND (wants_seq <> commits OR wants = ?)"

# Texts are put together from the constants above alone; values are always bound.
# ruff: noqa: S608
_PUT_INLINE: Final = f"""
    UPDATE heads SET %s revision = revision + 1, mails = mails + 1
    WHERE run_id = ? AND {IS_LIVE} AND {READABLE} AND (? OR mails < ? AND overflow_count = 0)
      AND NOT EXISTS (SELECT 1 FROM mail WHERE mail.run_id = heads.run_id AND mail.id = ?) %s
    {RETURNING}"""
_COUNT: Final = f"""
    UPDATE heads SET %s revision = revision + 1, overflow_last = ?,
        overflow_count = overflow_count + 1, format = {RUN_FORMAT}
    WHERE run_id = ? AND {IS_LIVE} AND {READABLE} AND overflow_last = ? AND generation = ? %s
    {RETURNING}"""
_COUNT_VOID: Final = f"""
    UPDATE heads SET overflow_last = ?, format = {RUN_FORMAT}
    WHERE run_id = ? AND {IS_LIVE} AND {READABLE} AND overflow_last = ?
    {RETURNING}"""
_QUIET: Final = f"AND NOT ({_WAKES_FOR})"
_INLINE: Final = {True: _PUT_INLINE % ("", _QUIET), False: _PUT_INLINE % (_WAKE, "")}
_COUNTS: Final = {True: _COUNT % ("", _QUIET), False: _COUNT % (_WAKE, "")}
_PUT_BODY: Final = "INSERT OR IGNORE INTO blobs (run_id, name, data) VALUES (?, ?, ?)"
_KEY: Final = "SELECT n, at FROM deliveries WHERE run_id = ? AND key = ?"
_PUT_KEY: Final = "INSERT OR REPLACE INTO deliveries (run_id, key, n, at) VALUES (?, ?, ?, ?)"
_SLOTS: Final = """
    SELECT n, id, kind, name, at, body, blob, key, void, generation FROM overflow
    WHERE run_id = ? AND n BETWEEN ? AND ? ORDER BY n"""
_PUT_SLOT: Final = """
    INSERT INTO overflow (run_id, n, id, kind, name, at, body, blob, key, generation, void)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)"""
_MAKE_VOID: Final = "UPDATE overflow SET void = 1 WHERE run_id = ? AND n = ?"
_DROP_SLOT: Final = "DELETE FROM overflow WHERE run_id = ? AND n = ?"


def slots(
    connection: sqlite3.Connection, run_id: RunId, first: int, last: int
) -> Mapping[int, Slot]:
    """The slots of a run with these numbers."""
    rows = connection.execute(_SLOTS, (run_id, first, last)).fetchall()
    return {
        number: Slot(one, InboxMessage(MessageKind(kind), *message), key, bool(void), generation)
        for number, one, kind, *message, key, void, generation in rows
    }


def drop_slots(connection: sqlite3.Connection, run_id: RunId, numbers: Iterable[int]) -> None:
    """Forget what is consumed: the journal, in the same transaction, knows that it is."""
    connection.executemany(_DROP_SLOT, [(run_id, number) for number in numbers])


class SqliteInboxes:
    """The steps of a delivery, in the transaction of a connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def get(self, run_id: RunId) -> Head | None:
        """The head as it stands."""
        return find(self._connection, run_id)

    def key_entry(self, run_id: RunId, key: str) -> KeyEntry | None:
        """What is stored for a key."""
        row = self._connection.execute(_KEY, (run_id, key)).fetchone()
        return None if row is None else KeyEntry(*row)

    def put_body(self, run_id: RunId, blob: Blob) -> None:
        """Put the body of a message."""
        self._connection.execute(_PUT_BODY, (run_id, blob.name, blob.data))

    def put_inline(
        self, run_id: RunId, message_id: str, message: InboxMessage, now: EpochMs, quiet: bool
    ) -> Written:
        """Put a message into the head."""
        in_any_case = message.kind is not MessageKind.SIGNAL
        where = (run_id, in_any_case, limits.INLINE_MESSAGES, message_id)
        values = (*where, message.name) if quiet else (now, *where)
        written = update(self._connection, _INLINE[quiet], values, run_id)
        if not isinstance(written, Done):
            return written
        put_message(self._connection, run_id, message_id, message)
        head = find(self._connection, run_id)
        return written if head is None else Done(head)

    def put_slot(self, run_id: RunId, number: int, slot: Slot) -> Slot | None:
        """Put a slot, unless there is one."""
        there = slots(self._connection, run_id, number, number).get(number)
        if there is None:
            one = slot.message
            message = (one.kind, one.name, one.at, one.body, one.blob)
            values = (run_id, number, slot.id, *message, slot.key, slot.generation)
            self._connection.execute(_PUT_SLOT, values)
        return there

    def overflow(self, run_id: RunId, first: int, last: int) -> Mapping[int, Slot]:
        """The slots with these numbers."""
        return slots(self._connection, run_id, first, last)

    def put_key(
        self, run_id: RunId, key: str, entry: KeyEntry, instead: KeyEntry | None = None
    ) -> KeyEntry | None:
        """Put a key, unless it is there, or in place of one."""
        there = self.key_entry(run_id, key)
        if there is not None and there != instead:
            return there
        self._connection.execute(_PUT_KEY, (run_id, key, entry.number, entry.at))
        return None

    def make_void(self, run_id: RunId, number: int) -> None:
        """A slot does not count."""
        self._connection.execute(_MAKE_VOID, (run_id, number))

    def count(
        self, run_id: RunId, number: int, name: str, now: EpochMs, quiet: bool, generation: int
    ) -> Written:
        """Let a slot count."""
        where = (number, run_id, number - 1, generation)
        values = (*where, name) if quiet else (now, *where)
        return update(self._connection, _COUNTS[quiet], values, run_id)

    def count_void(self, run_id: RunId, number: int) -> Written:
        """Pass over a slot."""
        values = (number, run_id, number - 1)
        return update(self._connection, _COUNT_VOID, values, run_id)
