"""Runs in SQLite. Every condition stands in the statement that writes."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final

from stepwell_engine.adapters.delivery import deliver
from stepwell_engine.adapters.sqlite.database import Database, Row
from stepwell_engine.adapters.sqlite.endings import (
    cancel,
    close,
    mark_notified,
    revive,
    time_out,
)
from stepwell_engine.adapters.sqlite.heads import (
    COLUMNS,
    INSERT,
    IS_LIVE,
    IS_STOPPED,
    READABLE,
    RETURNING,
    find,
    head_of,
    put_blobs,
    put_message,
    row_of,
    update,
)
from stepwell_engine.adapters.sqlite.inbox import SqliteInboxes, drop_slots, slots
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.inbox import InboxMessage, Slot
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.run.status import Status
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.core.values.units import EpochMs, LeaseToken, ProjectRef, RunId, WorkflowName
from stepwell_engine.limits import (
    BASE_RUN_FORMAT,
    CLOCK_MARGIN,
    RUN_FORMAT,
    SUSPECT_LOST_LEASES,
    TICK,
)
from stepwell_engine.ports import (
    KEEP,
    UNCHECKED,
    Commit,
    Delivered,
    Done,
    Due,
    Refused,
    Revival,
    Written,
)

_LAST_ID: Final = "\U0010ffff"  # sorts after every run id

# Texts are put together from the constants above alone; values are always bound.
# ruff: noqa: S608
_SELECT_BY_KEY: Final = (
    f"SELECT {COLUMNS} FROM heads WHERE run_id = "
    "(SELECT k.run_id FROM keys k WHERE k.project = ? AND k.workflow = ? AND k.key = ?)"
)
_PUT_KEY: Final = "INSERT OR REPLACE INTO keys (project, workflow, key, run_id) VALUES (?, ?, ?, ?)"
_CLAIM: Final = f"""
    UPDATE heads SET token = ?, until = ?, claimed_at = ?, lost = lost + (token IS NOT NULL),
        alone_losses = alone_losses + (token IS NOT NULL AND alone), alone = ?,
        format = max(format, ?),
        wake_at = iif(wake_at + {TICK} < ?, min(?, coalesce(deadline, ?)), wake_at)
    WHERE run_id = ? AND {IS_LIVE} AND {READABLE} AND ready_at <= ?
      AND (deadline IS NULL OR deadline > ?)
      AND (token IS NULL OR token <> ? AND until + {CLOCK_MARGIN} < ?)
      AND lost < coalesce(?, lost + 1)
    {RETURNING}"""
_EXTEND: Final = f"""
    UPDATE heads SET until = ?, wake_at = ?
    WHERE run_id = ? AND token = ? AND until <= ? AND {IS_LIVE} AND {READABLE}
    {RETURNING}"""
_COMMIT: Final = """
    UPDATE heads SET commits = commits + 1, journal = ?, status = coalesce(?, status),
        ready_at = coalesce(?, ready_at), ended_at = coalesce(?, ended_at),
        token = iif(?, NULL, token), until = iif(?, 0, until), claimed_at = iif(?, 0, claimed_at),
        alone = iif(?, 0, alone), lost = iif(?, 0, lost),
        alone_losses = iif(?, 0, alone_losses), owes = owes OR ?, format = max(format, ?),
        overflow_count = overflow_count - ?, wants_seq = iif(? IS NULL, wants_seq, commits + 1),
        wants = coalesce(?, wants)%s
    WHERE run_id = ? AND token = ? AND commits = ? AND revision = coalesce(?, revision)
      AND %s"""
_EXPECTED: Final = {"live": IS_LIVE, "stopped": IS_STOPPED}
# By (expected status, whether wake_at is set): what is not set costs no write of its index.
_LETS_GO: Final = {
    (expect, wake): _COMMIT
    % (", wake_at = iif(owes, coalesce(?, wake_at), ?)" if wake else "", condition)
    for expect, condition in _EXPECTED.items()
    for wake in (False, True)
}
_COMMITS: Final = {form: f"{sql} AND {READABLE} {RETURNING}" for form, sql in _LETS_GO.items()}
_DROP_MESSAGE: Final = "DELETE FROM mail WHERE run_id = ? AND id = ?"
_COUNT_INBOX: Final = f"""
    UPDATE heads SET mails = (SELECT count(*) FROM mail WHERE mail.run_id = heads.run_id)
    WHERE run_id = ? {RETURNING}"""
_DUE: Final = f"""
    SELECT run_id, project, wake_at FROM heads
    WHERE wake_at IS NOT NULL AND wake_at <= ? AND (wake_at, run_id) > (?, ?) AND {READABLE}
    ORDER BY wake_at, run_id LIMIT ?"""
_LIST: Final = f"""
    SELECT {COLUMNS} FROM heads
    WHERE project = ? AND workflow = ? AND run_id < ? AND status = coalesce(?, status)
      AND {READABLE}
    ORDER BY run_id DESC LIMIT ?"""
_BLOB: Final = "SELECT data FROM blobs WHERE run_id = ? AND name = ?"
# Whatever lives or holds a lease has a wake_at, so that its index finds all of them.
_RECOVER_HELD: Final = f"""
    UPDATE heads SET until = 0, wake_at = ?
    WHERE wake_at IS NOT NULL AND token IS NOT NULL AND ({IS_LIVE} OR {IS_STOPPED})
      AND {READABLE}"""
_RECOVER_READY: Final = f"""
    UPDATE heads SET wake_at = ?
    WHERE wake_at > ? AND token IS NULL AND ready_at <= ? AND {IS_LIVE} AND {READABLE}"""


class SqliteRuns:
    """The Runs port on a Database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, head: Head, blobs: Sequence[Blob] = ()) -> Written:
        """Put a new run and its idempotency key; Refused with the run in its way."""
        key = head.idempotency_key
        owner = (head.project, head.workflow, key)
        values = row_of(head)

        def operation(connection: sqlite3.Connection) -> Written:
            if key is not None:
                holder = connection.execute(_SELECT_BY_KEY, owner).fetchone()
                if holder is not None:
                    return Refused(head_of(connection, holder))
            if connection.execute(INSERT, values).rowcount == 0:
                return Refused(find(connection, head.run_id))
            if key is not None:
                connection.execute(_PUT_KEY, (*owner, head.run_id))
            for message_id, message in head.inbox.items():
                put_message(connection, head.run_id, message_id, message)
            put_blobs(connection, head.run_id, blobs)
            return Done(head)

        return self._database.write(operation)

    def get(self, run_id: RunId) -> Head | None:
        """The head as it stands."""
        return self._database.read(lambda connection: find(connection, run_id))

    def by_key(self, project: ProjectRef, workflow: WorkflowName, key: str) -> Head | None:
        """The run that an idempotency key stands for."""

        def query(connection: sqlite3.Connection) -> Head | None:
            row = connection.execute(_SELECT_BY_KEY, (project, workflow, key)).fetchone()
            return None if row is None else head_of(connection, row)

        return self._database.read(query)

    def claim(
        self,
        run_id: RunId,
        lease_token: LeaseToken,
        now: EpochMs,
        lease_expires_at: EpochMs,
        lane: Lane = Lane.HOST,
    ) -> Written:
        """Take the lease; own token: had it already."""
        alone = lane is Lane.ALONE
        lost = SUSPECT_LOST_LEASES if lane is Lane.SHARED else None
        raised = RUN_FORMAT if alone else BASE_RUN_FORMAT
        lease = (lease_token, lease_expires_at, now)
        wake = (now, lease_expires_at, lease_expires_at)
        values = (*lease, alone, raised, *wake, run_id, now, now, lease_token, now, lost)

        def operation(connection: sqlite3.Connection) -> Written:
            written = update(connection, _CLAIM, values, run_id)
            found = written.head
            return Done(found) if found and found.lease_token == lease_token else written

        return self._database.write(operation)

    def extend(
        self, run_id: RunId, lease_token: LeaseToken, lease_expires_at: EpochMs, wake_at: EpochMs
    ) -> Written:
        """Move the end of a held lease."""
        values = (lease_expires_at, wake_at, run_id, lease_token, lease_expires_at)
        return self._database.write(lambda c: update(c, _EXTEND, values, run_id))

    def commit(self, commit: Commit) -> Written:
        """One step forward."""
        run_id = commit.run_id
        sql, values = _COMMITS[_form_of(commit)], _values_of(commit)

        def operation(connection: sqlite3.Connection) -> Written:
            row = connection.execute(sql, values).fetchone()
            if row is None:
                return Refused(find(connection, run_id))
            put_blobs(connection, run_id, commit.blobs)
            if commit.taken:
                drop_slots(connection, run_id, commit.taken)
            if commit.consumed:
                gone = [(run_id, message_id) for message_id in commit.consumed]
                connection.executemany(_DROP_MESSAGE, gone)
                row = connection.execute(_COUNT_INBOX, (run_id,)).fetchone()
            return Done(head_of(connection, row))

        return self._database.write(operation)

    def let_go(self, commit: Commit) -> bool:
        """One step forward, whatever the format."""
        sql, values = _LETS_GO[_form_of(commit)], _values_of(commit)

        def operation(connection: sqlite3.Connection) -> bool:
            if connection.execute(sql, values).rowcount == 0:
                return False
            put_blobs(connection, commit.run_id, commit.blobs)
            return True

        return self._database.write(operation)

    def deliver(
        self,
        run_id: RunId,
        message_id: str,
        message: InboxMessage,
        now: EpochMs,
        blob: Blob | None,
        key: str | None = None,
        seen: Head | None = None,
    ) -> Delivered | Refused:
        """Put a message into the inbox, in the head or beside it, in one transaction."""

        def operation(connection: sqlite3.Connection) -> Delivered | Refused:
            inboxes = SqliteInboxes(connection)
            return deliver(inboxes, run_id, message_id, message, now, blob, key, seen)

        return self._database.write(operation)

    def overflow(self, run_id: RunId, first: int, last: int) -> Mapping[int, Slot]:
        """The slots with these numbers."""
        return self._database.read(lambda connection: slots(connection, run_id, first, last))

    def cancel(
        self, run_id: RunId, now: EpochMs, cascade: bool = False, generation: int = 0
    ) -> Written:
        """End a live run; its lease stays."""
        return self._database.write(lambda c: cancel(c, run_id, now, cascade, generation))

    def time_out(self, run_id: RunId, now: EpochMs, generation: int) -> Written:
        """End a live run that is late; its lease stays."""
        return self._database.write(lambda c: time_out(c, run_id, now, generation))

    def revive(self, revival: Revival) -> Written:
        """Let a run that has ended go on."""
        return self._database.write(lambda c: revive(c, revival))

    def close(
        self, run_id: RunId, lease_token: LeaseToken, commit_seq: int, journal: bytes
    ) -> Written:
        """Settle a stopped run whose lease is over."""
        return self._database.write(lambda c: close(c, run_id, lease_token, commit_seq, journal))

    def mark_notified(self, run_id: RunId, generation: int = 0) -> Written:
        """Nobody is to be notified any more."""
        return self._database.write(lambda c: mark_notified(c, run_id, generation))

    def due(self, before: EpochMs, cursor: str | None, limit: int) -> tuple[list[Due], str | None]:
        """A page of the heads with wake_at <= before, by (wake_at, run_id)."""
        wake_at, _, run_id = (cursor or "-1:").partition(":")
        values = (before, int(wake_at), run_id, limit + 1)
        rows = self._database.read(lambda connection: connection.execute(_DUE, values).fetchall())
        page = [Due(about_run(run_id, project), at) for run_id, project, at in rows[:limit]]
        more = len(rows) > limit
        return page, f"{page[-1].wake_at}:{page[-1].subject.id}" if more else None

    def list(
        self,
        project: ProjectRef,
        workflow: WorkflowName,
        before: str | None,
        limit: int,
        status: Status | None,
    ) -> list[Head]:
        """Heads of a workflow, newest first; those of a newer format left out."""
        wanted = None if status is None else status.value
        values = (project, workflow, before or _LAST_ID, wanted, limit)
        return self._database.read(
            lambda connection: [
                head_of(connection, row) for row in connection.execute(_LIST, values).fetchall()
            ]
        )

    def blob(self, run_id: RunId, name: str) -> bytes | None:
        """A blob's data."""

        return self.blobs(run_id, [name]).get(name)

    def blobs(self, run_id: RunId, names: Sequence[str]) -> Mapping[str, bytes]:
        """The data of those that exist."""

        def query(connection: sqlite3.Connection) -> dict[str, bytes]:
            rows = {
                name: connection.execute(_BLOB, (run_id, name)).fetchone()
                for name in dict.fromkeys(names)
            }
            return {name: row[0] for name, row in rows.items() if row is not None}

        return self._database.read(query)

    def recover(self, now: EpochMs) -> int:
        """After a crash of the only host: no lease is held any more, what is ready is due now.

        Every lease ends (a claim then counts it as lost) and every ready run is woken. Returns how
        many heads changed. Only for the one process that uses the file.
        """

        def operation(connection: sqlite3.Connection) -> int:
            held = connection.execute(_RECOVER_HELD, (now,)).rowcount
            return held + connection.execute(_RECOVER_READY, (now, now, now)).rowcount

        return self._database.write(operation)


def _form_of(commit: Commit) -> tuple[str, bool]:
    return commit.expect, commit.wake_at is not KEEP


def _values_of(commit: Commit) -> Row:
    wants = None if commit.wants is KEEP else commit.wants
    return (
        commit.journal,
        None if commit.status is KEEP else commit.status.value,
        None if commit.ready_at is KEEP else commit.ready_at,
        None if commit.ended_at is KEEP else commit.ended_at,
        commit.release,
        commit.release,
        commit.release,
        commit.release,
        commit.progress,
        commit.recorded,
        commit.notify_pending,
        commit.format,
        len(commit.taken),
        wants,
        wants,
        *(() if commit.wake_at is KEEP else (commit.wake_at, commit.wake_at)),
        commit.run_id,
        commit.lease_token,
        commit.commit_seq,
        None if commit.inbox_seq is UNCHECKED else commit.inbox_seq,
    )
