"""Rows of a result as JSON.

What JSON has too (null, booleans, numbers up to double precision, text, JSON itself, arrays)
becomes that. Timestamps become ISO 8601, bytes base64, everything else (numeric, uuid, intervals,
ranges, infinity, …) the text that PostgreSQL writes for it: exact, and fit to be read back.
"""

import base64
import math
import re
from typing import Any, Final

import psycopg
from psycopg import postgres, pq
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Loader, Transformer

from stepwell_engine import limits
from stepwell_engine.adapters.postgres.columns import distinct
from stepwell_engine.core.values import jsonvalue

_TIMESTAMP: Final = re.compile(
    r"(\d{4,}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)([+-]\d\d)?(.*)", re.A
)
# A row with more text than this cannot become so little JSON: it is not even looked at.
_MAX_ROW: Final = 1 * limits.MIB
_LENGTH: Final = 0  # the type that stands for all others while lengths are taken
_MAX_CELL_NESTING: Final = limits.MAX_NESTING - 10  # the output, the list of rows, the row


class _Text(Loader):
    """Leaves a value as PostgreSQL writes it."""

    def load(self, data: Buffer) -> str:
        return bytes(data).decode("utf-8", "replace")


class _Timestamp(_Text):
    """`2026-01-02 03:04:05.6+00` as `2026-01-02T03:04:05.6+00:00`."""

    def load(self, data: Buffer) -> str:
        text = super().load(data)
        match = _TIMESTAMP.fullmatch(text)
        if match is None:
            return text
        date, time, zone, rest = match.groups()
        if zone is not None and not rest.startswith(":"):
            zone += ":00"
        return f"{date}T{time}{zone or ''}{rest}"


class _Length(Loader):
    """Only counts: a value of any size costs nothing."""

    def load(self, data: Buffer) -> int:
        return len(data)


_AS_TEXT: Final = (
    *("numeric", "uuid", "date", "time", "timetz", "interval", "inet", "cidr", "record"),
    *("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"),
    *("int4multirange", "int8multirange", "nummultirange"),
    *("datemultirange", "tsmultirange", "tstzmultirange"),
)


class Conversions:
    """How values are read; an AdaptContext of psycopg."""

    def __init__(self) -> None:
        self.connection: psycopg.Connection[Any] | None = None
        self.adapters = AdaptersMap(postgres.adapters)
        for name in _AS_TEXT:
            self.adapters.register_loader(name, _Text)
        for name in ("timestamp", "timestamptz"):
            self.adapters.register_loader(name, _Timestamp)


class _Lengths:
    """Reads how long values are; an AdaptContext of psycopg."""

    def __init__(self) -> None:
        self.connection: psycopg.Connection[Any] | None = None
        self.adapters = AdaptersMap()
        self.adapters.register_loader(_LENGTH, _Length)


class Rows:
    """Collects the first rows of a result: at most MAX_ROWS and MAX_ROWS_BYTES of JSON.

    `count`: how many rows came; `oversized`: one of them was not even looked at. A column whose
    name comes again is shown as `name_2`.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._transformer = Transformer(connection)
        self._lengths = Transformer(_Lengths())
        self._names: list[str] | None = None
        self._loaders: list[Any] = []
        self._size = len(b"[]")
        self._rows: list[bytes] = []
        self.count = 0
        self.truncated = False
        self.oversized = False

    def add(self, result: pq.abc.PGresult) -> None:
        """Take the one row of a result."""
        self.count += 1
        self.oversized = self.oversized or self._is_oversized(result)
        if self.truncated or self.oversized:
            self.truncated = True
            return
        if self._names is None:
            self._names = distinct(
                [
                    (result.fname(index) or b"").decode("utf-8", "replace")
                    for index in range(result.nfields)
                ]
            )
            self._loaders = [
                self._transformer.get_loader(result.ftype(index), pq.Format.TEXT)
                for index in range(result.nfields)
            ]
        cells = (
            _cell(loader, result.get_value(0, index)) for index, loader in enumerate(self._loaders)
        )
        row = jsonvalue.encode(dict(zip(self._names, cells, strict=True)))
        size = self._size + len(row) + (1 if self._rows else 0)
        if len(self._rows) == limits.MAX_ROWS or size > limits.MAX_ROWS_BYTES:
            self.truncated = True
            return
        self._size = size
        self._rows.append(row)

    def _is_oversized(self, result: pq.abc.PGresult) -> bool:
        self._lengths.set_pgresult(result, set_loaders=False)
        self._lengths.set_loader_types([_LENGTH] * result.nfields, pq.Format.TEXT)
        lengths: tuple[int | None, ...] = self._lengths.load_row(0, tuple) or ()
        self._lengths.set_pgresult(None)
        return sum(length or 0 for length in lengths) > _MAX_ROW

    def output(self, affected: int) -> bytes:
        """`{"rows_affected": n}`, with `rows` if there are any, and `rows_truncated` if cut."""
        parts = [b'{"rows_affected":%d' % affected]
        if self._rows or self.truncated:
            parts.append(b',"rows":[' + b",".join(self._rows) + b"]")
        if self.truncated:
            parts.append(b',"rows_truncated":true')
        return b"".join(parts) + b"}"


def _cell(loader: Any, data: bytes | None) -> Any:
    if data is None:
        return None
    text = data.decode("utf-8", "replace")
    try:
        value = _plain(loader.load(data))
        jsonvalue.encode(value)
    except (psycopg.Error, ValueError, RecursionError):
        return text  # beyond what Python or JSON can hold
    return text if jsonvalue.is_deeper(value, _MAX_CELL_NESTING) else value


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _NOT_FINITE[str(value)]
        case bytes():
            return base64.b64encode(value).decode()
        case list() | tuple():
            return [_plain(item) for item in value]
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case _:
            return str(value)


_NOT_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
