"""The journal of a run: what its steps came to, and the times that govern the current one.

Stored as one compact JSON array inside the head; finished steps that no longer fit move to an
immutable page. Times are stored relative to the run's creation, to keep the head small.
"""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from stepwell_engine import limits
from stepwell_engine.core import jsonvalue
from stepwell_engine.core.run import Blob, StepStatus
from stepwell_engine.errors import NewerFormat

_CODES: Final = {
    StepStatus.SUCCEEDED: "s",
    StepStatus.FAILED: "f",
    StepStatus.CANCELLED: "c",
    StepStatus.PENDING: "p",
    StepStatus.RETRYING: "r",
    StepStatus.SLEEPING: "z",
    StepStatus.WAITING: "w",
}
_CELLS: Final = 11  # of a record
_PLAIN: Final = (0, 0, None, 0)  # no fan-out, no rollback: not stored
_STATUSES: Final = {code: status for status, code in _CODES.items()}


@dataclass(frozen=True, slots=True)
class Stored:
    """An output too large for the journal: the blob that holds it, its size in bytes."""

    blob: str
    size: int


@dataclass(frozen=True, slots=True)
class Joined:
    """The output of a join: put together from its children's when somebody reads it."""


Output = bytes | Stored | Joined


@dataclass(frozen=True, slots=True)
class Record:
    """One step, as far as it has come. Times in ms since the epoch.

    `attempt` counts the recorded attempts; `started_at` is when the first of them began;
    `next_at` is when a backoff or a sleep ends, or a wait expires. `output` is compact JSON.
    `undo`: this is the step's compensation. `child`: the latest run that a sub-workflow step
    started; while the record is pending that run may not exist yet.
    """

    ordinal: int
    status: StepStatus
    attempt: int = 0
    started_at: int | None = None
    finished_at: int | None = None
    output: Output | None = None
    error: str | None = None
    code: str | None = None
    next_at: int | None = None
    child: str | None = None
    undo: bool = False

    @property
    def effect(self) -> tuple[int, bool]:
        """Which record of the run this is: there is one per step, one per compensation."""
        return self.ordinal, self.undo


@dataclass(frozen=True, slots=True)
class PageRef:
    """An immutable page of finished records: who wrote it, with which write, how many."""

    token: str
    write: int
    count: int

    @property
    def blob(self) -> str:
        """The name of its blob."""
        return f"p.{self.token}.{self.write}"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run fails. `ordinal` is the failed step's, None for a structural failure.

    `stuck`: a compensation failed for good, the rollback stopped there.
    """

    message: str
    code: str | None
    ordinal: int | None
    stuck: bool = False


@dataclass(frozen=True, slots=True)
class Journal:
    """`position` is the index of the current top-level step. `records` are finished steps, in
    the order in which they finished, those on `pages` before them; `open` are begun, unfinished
    ones. `attempts` counts every executed attempt of the run.

    Of the fan-out that the run is in: `done` has a bit for each child that succeeded, `size` is
    how many bytes its join's output has so far. Of a run that is being unwound: `undo` is the
    index of the top-level step whose compensation is next, -1 when all are undone (None: nothing
    was undone yet), and `undone` has a bit for each child of that fan-out that is undone.
    """

    position: int = 0
    attempts: int = 0
    records: tuple[Record, ...] = ()
    open: tuple[Record, ...] = ()
    pages: tuple[PageRef, ...] = ()
    failure: Failure | None = None
    done: int = 0
    size: int = 0
    undo: int | None = None
    undone: int = 0

    def opened(self, ordinal: int, undo: bool = False) -> Record | None:
        """The open record of a step, or of its compensation."""
        return next((record for record in self.open if record.effect == (ordinal, undo)), None)


@dataclass(frozen=True, slots=True)
class Packed:
    """A journal ready to be stored: its bytes, and the blobs that must be written before."""

    journal: Journal
    data: bytes
    blobs: tuple[Blob, ...]


def pack(journal: Journal, base: int, token: str, write: int) -> Packed:
    """Encode a journal, moving large outputs and a full journal's finished steps to blobs.

    If what backs off has long errors they are cut: all of a head has to fit into one item.
    `base` is the run's creation time; `token` and `write` (how often the head was written
    before) make the names of the blobs this very write's own.
    """
    blobs: list[Blob] = []
    records = []
    for record in journal.records:
        if isinstance(record.output, bytes) and len(record.output) > limits.INLINE_OUTPUT:
            name = f"{record.ordinal}{'u' if record.undo else ''}"
            blob = Blob(f"o.{token}.{write}.{name}", record.output)
            blobs.append(blob)
            record = replace(record, output=Stored(blob.name, len(blob.data)))  # noqa: PLW2901
        records.append(record)
    if blobs:
        journal = replace(journal, records=tuple(records))
    data = encode(journal, base)
    if len(data) > limits.PAGE_ABOVE and journal.records:
        page = PageRef(token, write, len(journal.records))
        blobs.append(Blob(page.blob, _squeeze(_rows(journal.records, base))))
        journal = replace(journal, records=(), pages=(*journal.pages, page))
        data = encode(journal, base)
    if len(data) > limits.OPEN_ERRORS and journal.open:
        most = limits.OPEN_ERRORS // len(journal.open)
        journal = replace(journal, open=tuple(_cut(record, most) for record in journal.open))
        data = encode(journal, base)
    return Packed(journal, data, tuple(blobs))


def _cut(record: Record, most: int) -> Record:
    """The record with an error of at most that many bytes."""
    error = record.error
    return record if error is None else replace(record, error=_start(error, most))


def _start(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore")


def encode(journal: Journal, base: int) -> bytes:
    """The journal's bytes with everything inline, for a write that carries no blobs."""
    return _squeeze(_text(journal, base))


def decode(data: bytes, base: int) -> Journal:
    """The journal from its stored bytes (none: a run that has not begun)."""
    if not data:
        return Journal()
    fields = json.loads(_expand(data))
    if fields[0] > limits.FORMAT:
        raise NewerFormat("a run's journal", fields[0], limits.FORMAT)
    _, position, attempts, failure, pages, records, opened, *branching = fields
    done, size, undo, undone = branching or (0, 0, None, 0)
    return Journal(
        position=position,
        attempts=attempts,
        records=tuple(_record(row, base) for row in records),
        open=tuple(_record(row, base) for row in opened),
        pages=tuple(PageRef(*page) for page in pages),
        failure=Failure(*failure) if failure else None,
        done=done,
        size=size,
        undo=undo,
        undone=undone,
    )


def decode_page(data: bytes, base: int) -> tuple[Record, ...]:
    """The records of a page."""
    return tuple(_record(row, base) for row in json.loads(_expand(data)))


def _text(journal: Journal, base: int) -> str:
    failure = journal.failure
    head = json.dumps(
        [
            limits.FORMAT,
            journal.position,
            journal.attempts,
            _failure(failure) if failure else None,
            [[page.token, page.write, page.count] for page in journal.pages],
        ],
        ensure_ascii=False,
        separators=(",", ":"),
    )
    branching = (journal.done, journal.size, journal.undo, journal.undone)
    tail = "," + json.dumps(branching)[1:-1].replace(" ", "") if branching != _PLAIN else ""
    return f"{head[:-1]},{_rows(journal.records, base)},{_rows(journal.open, base)}{tail}]"


def _failure(failure: Failure) -> list[Any]:
    cells = [failure.message, failure.code, failure.ordinal]
    return [*cells, True] if failure.stuck else cells


def _rows(records: Sequence[Record], base: int) -> str:
    return f"[{','.join(_row(record, base) for record in records)}]"


def _row(record: Record, base: int) -> str:
    """One record as text. An output is JSON already, so it is spliced in rather than parsed."""
    match record.output:
        case None:
            output = "null"
        case bytes(inline):
            output = f"[{inline.decode()}]"
        case Stored(blob, size):
            output = f'["{blob}",{size}]'
        case Joined():
            output = "[]"
    cells = [
        str(record.ordinal),
        f'"{_CODES[record.status]}"',
        str(record.attempt),
        _cell(_since(record.started_at, base)),
        _cell(_since(record.finished_at, base)),
        output,
        _cell(record.error),
        _cell(record.code),
        _cell(_since(record.next_at, base)),
        _cell(record.child),
        "1" if record.undo else "null",
    ]
    while cells[-1] == "null":
        cells.pop()
    return f"[{','.join(cells)}]"


def _cell(value: str | int | None) -> str:
    if value is None:
        return "null"
    return str(value) if isinstance(value, int) else json.dumps(value, ensure_ascii=False)


def _record(row: list[Any], base: int) -> Record:
    ordinal, status, attempt, started, finished, output, error, code, next_at, child, undo = row + [
        None
    ] * (_CELLS - len(row))
    return Record(
        ordinal=ordinal,
        status=_STATUSES[status],
        attempt=attempt,
        started_at=None if started is None else base + started,
        finished_at=None if finished is None else base + finished,
        output=_output(output),
        error=error,
        code=code,
        next_at=None if next_at is None else base + next_at,
        child=child,
        undo=undo is not None,
    )


def _output(cell: list[Any] | None) -> Output | None:
    if cell is None:
        return None
    if not cell:
        return Joined()
    if len(cell) == 1:
        return jsonvalue.encode(cell[0])
    return Stored(*cell)


def _since(at: int | None, base: int) -> int | None:
    return None if at is None else at - base


def _squeeze(text: str) -> bytes:
    data = text.encode()
    return zlib.compress(data) if len(data) > limits.COMPRESS_ABOVE else data


def _expand(data: bytes) -> bytes:
    # Plain journals and pages begin with a bracket, which no zlib stream does.
    return data if data[:1] == b"[" else zlib.decompress(data)
