"""The journal as bytes: one compact JSON array inside the head, and pages beside it."""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from stepwell_engine import limits
from stepwell_engine.core.run.head import Blob
from stepwell_engine.core.run.journal import Failure, Journal, PageRef
from stepwell_engine.core.run.records import Joined, Output, Record, Stored
from stepwell_engine.core.run.status import StepStatus
from stepwell_engine.core.values import jsonvalue
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
            name = f"{record.ordinal}{'u' if record.compensation else ''}"
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
    done, size, compensation, undone = branching or (0, 0, None, 0)
    return Journal(
        position=position,
        attempts=attempts,
        records=tuple(_record(row, base) for row in records),
        open=tuple(_record(row, base) for row in opened),
        pages=tuple(PageRef(*page) for page in pages),
        failure=Failure(*failure) if failure else None,
        children_done=done,
        children_bytes=size,
        compensating=compensation,
        children_compensated=undone,
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
    branching = (
        journal.children_done,
        journal.children_bytes,
        journal.compensating,
        journal.children_compensated,
    )
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
        "1" if record.compensation else "null",
    ]
    while cells[-1] == "null":
        cells.pop()
    return f"[{','.join(cells)}]"


def _cell(value: str | int | None) -> str:
    if value is None:
        return "null"
    return str(value) if isinstance(value, int) else json.dumps(value, ensure_ascii=False)


def _record(row: list[Any], base: int) -> Record:
    (
        ordinal,
        status,
        attempt,
        started,
        finished,
        output,
        error,
        code,
        next_at,
        child,
        compensation,
    ) = row + [None] * (_CELLS - len(row))
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
        compensation=compensation is not None,
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
