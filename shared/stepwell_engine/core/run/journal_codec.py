"""The journal as bytes: one compact JSON array inside the head, and pages beside it.

Finished steps that no longer fit move to an immutable page, and references to many pages to an
index page. Times are stored relative to the run's creation, and keys of steps as their numbers, to
keep the head small.
"""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, assert_never

from stepwell_engine import limits
from stepwell_engine.core.run.attempt_history import history_cells, history_of, shortened
from stepwell_engine.core.run.head import Blob
from stepwell_engine.core.run.journal import Failure, Journal, PageRef
from stepwell_engine.core.run.keys import StepKeys
from stepwell_engine.core.run.overflow import NOTHING_TAKEN, Taken
from stepwell_engine.core.run.records import Joined, Output, Record, Stored
from stepwell_engine.core.run.status import STEP_CODES, STEP_STATUSES
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.errors import NewerFormat

_CELLS: Final = 14  # of a record
_PLAIN: Final = (0, 0, None, 0)  # no fan-out, nothing compensated: not stored


@dataclass(frozen=True, slots=True)
class Packed:
    """A journal ready to be stored: its bytes, and the blobs that must be written before.

    `format` is the oldest format of runs whose readers read these bytes.
    """

    journal: Journal
    data: bytes
    blobs: tuple[Blob, ...]
    format: int


def format_of(journal: Journal) -> int:
    """The oldest format of runs that has all that is in the journal."""
    records = (*journal.records, *journal.open)
    losses = any(record.losses or record.hosts_lost or record.history for record in records)
    indexed = any(page.level for page in journal.pages)
    newer = losses or indexed or journal.taken != NOTHING_TAKEN
    return limits.RUN_FORMAT if newer else limits.BASE_RUN_FORMAT


def index_pages(
    pages: Sequence[PageRef], token: str, write: int
) -> tuple[tuple[PageRef, ...], tuple[Blob, ...]]:
    """Move the references of each level that is full to an index page of the next level.

    The references that are left, and the index pages. Nothing has to be read for it. Of a run that
    was written before there were index pages any number may move at once.
    """
    blobs = []
    left, level = tuple(pages), 0
    while len(full := [page for page in left if page.level == level]) >= limits.PAGES_OF_INDEX:
        level += 1
        index = PageRef(token, write, sum(page.count for page in full), level)
        blobs.append(Blob(index.blob, _squeeze(_json(list(map(_page_cells, full))))))
        left = (*(page for page in left if page.level >= level), index)
    return left, tuple(blobs)


def decode_index(data: bytes) -> tuple[PageRef, ...]:
    """The references on an index page."""
    return tuple(PageRef(*cells) for cells in json.loads(_expand(data)))


@dataclass(frozen=True, slots=True)
class JournalCodec:
    """Encodes and decodes the journal of one run.

    `base` is the run's creation time, ms since the epoch; `keys` those of the program that it
    executes.
    """

    base: int
    keys: StepKeys

    def pack(self, journal: Journal, token: str, write: int, *, decided: bool = True) -> Packed:
        """Encode a journal, moving large outputs and a full journal's finished steps to blobs.

        If what backs off has long errors they are cut, and histories with them: all of a head has
        to fit into one item.
        `token` and `write` (how often the head was written before) make the names of the blobs
        this very write's own. `decided`: what follows from the finished steps is in the journal.
        Else they stay, for whoever decides does not read pages.
        """
        blobs: list[Blob] = []
        records = []
        for record in journal.records:
            if isinstance(record.output, bytes) and len(record.output) > limits.INLINE_OUTPUT:
                number, compensation = self.keys.number_of(record.key)
                name = f"o.{token}.{write}.{number}{'u' if compensation else ''}"
                blobs.append(Blob(name, record.output))
                stored = Stored(name, len(record.output))
                record = replace(record, output=stored)  # noqa: PLW2901
            records.append(record)
        if blobs:
            journal = replace(journal, records=tuple(records))
        format_before = format_of(journal)  # what moves to a page is read with the head
        data = self.encode(journal)
        if len(data) > limits.PAGE_ABOVE and journal.taken.ranges:
            # What is taken stays: it must not have every step written to a page of its own.
            full = len(self.encode(replace(journal, taken=NOTHING_TAKEN))) > limits.PAGE_ABOVE
        else:
            full = len(data) > limits.PAGE_ABOVE
        if full and journal.records and decided:
            page = PageRef(token, write, len(journal.records))
            blobs.append(Blob(page.blob, _squeeze(self._rows(journal.records))))
            pages, index = index_pages((*journal.pages, page), token, write)
            blobs += index
            journal = replace(journal, records=(), pages=pages)
            data = self.encode(journal)
        if len(data) > limits.OPEN_ERRORS and journal.open:
            most = limits.OPEN_ERRORS // len(journal.open)
            cut = tuple(shortened(record, most) for record in journal.open)
            journal = replace(journal, open=cut)
            data = self.encode(journal)
        return Packed(journal, data, tuple(blobs), max(format_before, format_of(journal)))

    def encode(self, journal: Journal) -> bytes:
        """The journal's bytes as it stands; nothing moves to a blob."""
        failure = journal.failure
        head = _json(
            [
                format_of(journal),
                journal.position,
                journal.attempts,
                self._failure_cells(failure) if failure else None,
                list(map(_page_cells, journal.pages)),
            ]
        )
        taken = [_taken_cell(journal.taken)] if journal.taken != NOTHING_TAKEN else []
        branching = (
            journal.children_done,
            journal.children_bytes,
            journal.compensating,
            journal.children_compensated,
        )
        cells = list(map(_cell, branching)) if branching != _PLAIN or taken else []
        tail = "".join(f",{cell}" for cell in [*cells, *taken])
        rows = f"{self._rows(journal.records)},{self._rows(journal.open)}"
        return _squeeze(f"{head[:-1]},{rows}{tail}]")

    def decode(self, data: bytes) -> Journal:
        """The journal from its stored bytes (none: a run that has not begun)."""
        if not data:
            return Journal()
        fields = json.loads(_expand(data))
        if fields[0] > limits.RUN_FORMAT:
            raise NewerFormat("a run's journal", fields[0], limits.RUN_FORMAT)
        _, position, attempts, failure, pages, records, opened, *branching = fields
        done, size, compensating, compensated, *taken = branching or _PLAIN
        return Journal(
            position=position,
            attempts=attempts,
            records=tuple(map(self._record, records)),
            open=tuple(map(self._record, opened)),
            pages=tuple(PageRef(*page) for page in pages),
            failure=self._failure(*failure) if failure else None,
            children_done=done,
            children_bytes=size,
            compensating=compensating,
            children_compensated=compensated,
            taken=_taken(*taken[0]) if taken else NOTHING_TAKEN,
        )

    def decode_page(self, data: bytes) -> tuple[Record, ...]:
        """The records of a page."""
        return tuple(map(self._record, json.loads(_expand(data))))

    def _failure_cells(self, failure: Failure) -> list[Any]:
        number = None if failure.step is None else self.keys.number_of(failure.step)[0]
        cells = [failure.message, failure.code, number]
        return [*cells, True] if failure.stuck else cells

    def _failure(
        self, message: str, code: str | None, number: int | None, stuck: bool = False
    ) -> Failure:
        return Failure(message, code, None if number is None else self.keys.key_of(number), stuck)

    def _rows(self, records: Sequence[Record]) -> str:
        return f"[{','.join(map(self._row, records))}]"

    def _row(self, record: Record) -> str:
        """One record as text. An output is JSON already, so it is spliced in, not parsed."""
        match record.output:
            case None:
                output = "null"
            case bytes(inline):
                output = f"[{inline.decode()}]"
            case Stored(blob, size):
                output = f'["{blob}",{size}]'
            case Joined():
                output = "[]"
            case unknown:
                assert_never(unknown)
        number, compensation = self.keys.number_of(record.key)
        cells = [
            str(number),
            f'"{STEP_CODES[record.status]}"',
            str(record.attempt),
            _cell(self._since(record.started_at)),
            _cell(self._since(record.finished_at)),
            output,
            _cell(record.error),
            _cell(record.code),
            _cell(self._since(record.next_at)),
            _cell(record.child),
            "1" if compensation else "null",
            _cell(record.losses or None),
            _json(history_cells(record.history, self.base)) if record.history else "null",
            _cell(record.hosts_lost or None),
        ]
        while cells[-1] == "null":
            cells.pop()
        return f"[{','.join(cells)}]"

    def _record(self, row: list[Any]) -> Record:
        cells = row + [None] * (_CELLS - len(row))
        number, status, attempt, started, finished, output, error, code, next_at, child = cells[:10]
        return Record(
            key=self.keys.key_of(number, cells[10] is not None),
            status=STEP_STATUSES[status],
            attempt=attempt,
            started_at=self._at(started),
            finished_at=self._at(finished),
            output=_output(output),
            error=error,
            code=code,
            next_at=self._at(next_at),
            child=child,
            losses=cells[11] or 0,
            history=history_of(cells[12] or (), self.base),
            hosts_lost=cells[13] or 0,
        )

    def _since(self, at: int | None) -> int | None:
        return None if at is None else at - self.base

    def _at(self, since: int | None) -> int | None:
        return None if since is None else self.base + since


def _json(value: list[Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _page_cells(page: PageRef) -> list[Any]:
    cells = [page.token, page.write, page.count]
    return [*cells, page.level] if page.level else cells


def _cell(value: str | int | None) -> str:
    if value is None:
        return "null"
    return str(value) if isinstance(value, int) else json.dumps(value, ensure_ascii=False)


def _taken_cell(taken: Taken) -> str:
    """The mark; then, in turn, how many numbers are not consumed, and how many are."""
    cells, end = [taken.mark], taken.mark
    for first, last in taken.ranges:
        cells += [first - end - 1, last - first + 1]
        end = last
    return f"[{','.join(map(str, cells))}]"


def _taken(mark: int, *lengths: int) -> Taken:
    ranges, end = [], mark
    for gap, count in zip(lengths[::2], lengths[1::2], strict=True):
        ranges.append((end + gap + 1, end + gap + count))
        end += gap + count
    return Taken(mark, tuple(ranges))


def _output(cell: list[Any] | None) -> Output | None:
    if cell is None:
        return None
    if not cell:
        return Joined()
    if len(cell) == 1:
        return jsonvalue.encode(cell[0])
    return Stored(*cell)


def _squeeze(text: str) -> bytes:
    data = text.encode()
    return zlib.compress(data) if len(data) > limits.COMPRESS_ABOVE else data


def _expand(data: bytes) -> bytes:
    # Plain journals and pages begin with a bracket, which no zlib stream does.
    return data if data[:1] == b"[" else zlib.decompress(data)
