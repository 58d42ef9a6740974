"""The attempts of a step that are over: kept with its record, within bounds. Pure.

The newest ones are kept, whose numbers tell how many are left out, each with the start of its
error: the record itself has the whole text of the last one.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stepwell_engine import limits
from stepwell_engine.core.run.records import AttemptRecord, Record
from stepwell_engine.core.run.status import STEP_CODES, STEP_STATUSES


def record_attempt(record: Record, attempt: AttemptRecord) -> Record:
    """The record with one attempt more; one that it has already changes nothing.

    An attempt whose worker was lost is made again, with the same number.
    """
    known = ((one.number, one.started_at) for one in record.history)
    if (attempt.number, attempt.started_at) in known:
        return record
    kept = (*record.history, attempt)[-limits.HISTORY_ATTEMPTS :]
    most = limits.HISTORY_ERRORS // len(kept)
    return replace(record, history=tuple(_with_start(one, most) for one in kept))


def shortened(record: Record, most: int) -> Record:
    """The record with an error of at most `most` bytes, and as much of its history beside it."""
    left, kept = most, 0
    for attempt in reversed(record.history):
        left -= len(str(history_cells([attempt], 0)))
        if left < 0:
            break
        kept += 1
    history = record.history[len(record.history) - kept :]
    error = None if record.error is None else _start(record.error, most)
    return replace(record, error=error, history=history)


def history_cells(history: Sequence[AttemptRecord], base: int) -> list[Any]:
    """A history as JSON values, its times relative to `base`."""
    rows = []
    for one in history:
        begun, lasted = one.started_at - base, one.finished_at - one.started_at
        row = [one.number, STEP_CODES[one.outcome], begun, lasted, one.error, one.code]
        while row[-1] is None:
            row.pop()
        rows.append(row)
    return rows


def history_of(rows: Sequence[Sequence[Any]], base: int) -> tuple[AttemptRecord, ...]:
    """The history that was made into these values."""
    return tuple(
        AttemptRecord(number, STEP_STATUSES[code], base + begun, base + begun + lasted, *rest)
        for number, code, begun, lasted, *rest in rows
    )


def _with_start(attempt: AttemptRecord, most: int) -> AttemptRecord:
    error = attempt.error
    return attempt if error is None else replace(attempt, error=_start(error, most))


def _start(text: str, most: int) -> str:
    return text.encode(errors="replace")[:most].decode(errors="ignore")
