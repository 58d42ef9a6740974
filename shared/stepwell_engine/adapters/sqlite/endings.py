"""How runs in SQLite end otherwise than by a commit, and go on again."""

import sqlite3
from typing import Final

from stepwell_engine.adapters.sqlite.heads import (
    IS_LIVE,
    IS_STOPPED,
    READABLE,
    RETURNING,
    one_of,
    put_blobs,
    update,
)
from stepwell_engine.core.run.head import wake_time
from stepwell_engine.core.run.status import REVIVABLE, Status
from stepwell_engine.core.values.units import EpochMs, LeaseToken, RunId
from stepwell_engine.limits import BASE_RUN_FORMAT, CLOCK_MARGIN, RUN_FORMAT
from stepwell_engine.ports import Done, Revival, Written

_OWES_NOTICE: Final = "(parent IS NOT NULL AND NOT told)"
_LEASE_END: Final = "iif(token IS NULL, NULL, until)"

# Texts are put together from the constants above alone; values are always bound.
# ruff: noqa: S608
_STOP: Final = f"""
    UPDATE heads SET status = ?, ended_at = ?, revision = revision + 1,
        owes = ? OR {_OWES_NOTICE}, cascade = ?, format = max(format, ?),
        wake_at = iif(? OR {_OWES_NOTICE}, ?, {_LEASE_END})
    WHERE run_id = ? AND generation = ? AND {IS_LIVE} AND {READABLE}
    {RETURNING}"""
_NO_LEASE: Final = "token = NULL, until = 0, claimed_at = 0, alone = 0"
_CLOSE: Final = f"""
    UPDATE heads SET journal = ?, commits = commits + 1, {_NO_LEASE},
        wake_at = iif(owes, wake_at, NULL)
    WHERE run_id = ? AND {IS_STOPPED} AND token = ? AND commits = ? AND {READABLE}
    {RETURNING}"""
_REVIVE: Final = f"""
    UPDATE heads SET status = '{Status.PENDING.value}', ended_at = NULL, ready_at = 0,
        journal = ?, commits = commits + 1, {_NO_LEASE}, wake_at = ?, deadline = ?,
        generation = generation + 1, told = told OR parent IS NOT NULL AND NOT owes, owes = 0,
        lost = 0, alone_losses = 0, format = max(format, {RUN_FORMAT})
    WHERE run_id = ? AND generation = ? AND commits = ? AND {one_of(REVIVABLE)} AND {READABLE}
      AND (token IS NULL OR until + {CLOCK_MARGIN} < ?)
    {RETURNING}"""
_MARK_NOTIFIED: Final = f"""
    UPDATE heads SET owes = 0, wake_at = {_LEASE_END}
    WHERE run_id = ? AND generation = ? AND owes AND {READABLE}
    {RETURNING}"""


def cancel(
    connection: sqlite3.Connection, run_id: RunId, now: EpochMs, cascade: bool, generation: int
) -> Written:
    """End a live run; its lease stays."""
    stopped = (Status.CANCELLED.value, now, cascade, cascade, BASE_RUN_FORMAT, cascade, now)
    return update(connection, _STOP, (*stopped, run_id, generation), run_id)


def time_out(
    connection: sqlite3.Connection, run_id: RunId, now: EpochMs, generation: int
) -> Written:
    """End a live run that is late; its lease stays."""
    stopped = (Status.TIMED_OUT.value, now, False, False, RUN_FORMAT, False, now)
    return update(connection, _STOP, (*stopped, run_id, generation), run_id)


def close(
    connection: sqlite3.Connection,
    run_id: RunId,
    lease_token: LeaseToken,
    commit_seq: int,
    journal: bytes,
) -> Written:
    """Settle a stopped run whose lease is over."""
    return update(connection, _CLOSE, (journal, run_id, lease_token, commit_seq), run_id)


def revive(connection: sqlite3.Connection, revival: Revival) -> Written:
    """Let a run that has ended go on."""
    one = revival
    wake_at = wake_time(one.now, one.deadline)
    where = (one.run_id, one.generation, one.commit_seq, one.now)
    written = update(connection, _REVIVE, (one.journal, wake_at, one.deadline, *where), one.run_id)
    if isinstance(written, Done):
        put_blobs(connection, one.run_id, one.blobs)
    return written


def mark_notified(connection: sqlite3.Connection, run_id: RunId, generation: int) -> Written:
    """Nobody is to be notified any more."""
    return update(connection, _MARK_NOTIFIED, (run_id, generation), run_id)
