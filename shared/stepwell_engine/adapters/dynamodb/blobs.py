"""Blobs: one item each, or a chain of chunks for what is larger than an item may be."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from stepwell_engine.adapters.dynamodb.client import DynamoDB, Item
from stepwell_engine.adapters.dynamodb.heads import KIND, RUN_ID, key_of
from stepwell_engine.adapters.dynamodb.models import BlobItem
from stepwell_engine.core.run.head import Blob
from stepwell_engine.core.values.units import RunId
from stepwell_engine.limits import KIB

CHUNK: Final = 350 * KIB  # an item holds 400 KB

_DATA: Final = BlobItem.data.attr_name
_CHUNKS: Final = BlobItem.chunks.attr_name
_IS_NEW: Final = f"attribute_not_exists({RUN_ID})"


class Blobs:
    """The blobs of runs, in the table of runs."""

    def __init__(self, database: DynamoDB, table: str) -> None:
        self._database = database
        self._table = table

    def put(self, run_id: RunId, blob: Blob) -> None:
        """Write a blob, in place of an earlier one of this name."""
        for item in _items(run_id, blob):
            self._database.put(self._table, item)

    def put_if_absent(self, run_id: RunId, blob: Blob) -> None:
        """Write a blob whose name is not its writer's own; one that is there stays as it is."""
        for item in _items(run_id, blob):
            self._database.put(self._table, item, _IS_NEW)

    def get(self, run_id: RunId, names: Sequence[str]) -> dict[str, bytes]:
        """The data of those blobs that exist, strongly consistent, in one call for many."""
        firsts = self._read(run_id, list(dict.fromkeys(names)))
        rest = [
            _chunk_name(name, number)
            for name, first in firsts.items()
            for number in range(1, _count(first))
        ]
        chunks = self._read(run_id, rest)
        found = {}
        for name, first in firsts.items():
            data = [first[_DATA]["B"]]
            for number in range(1, _count(first)):
                chunk = chunks.get(_chunk_name(name, number))
                if chunk is None:
                    raise LookupError(f'chunk {number} of blob "{name}" of run {run_id} is gone')
                data.append(chunk[_DATA]["B"])
            found[name] = b"".join(data)
        return found

    def _read(self, run_id: RunId, names: Sequence[str]) -> dict[str, Item]:
        """The items of these names."""
        if len(names) == 1:
            item = self._database.get(self._table, key_of(run_id, names[0]))
            return {} if item is None else {names[0]: item}
        keys = [key_of(run_id, name) for name in names]
        return {item[KIND]["S"]: item for item in self._database.get_all(self._table, keys)}


def _count(first: Item) -> int:
    return int(first[_CHUNKS]["N"]) if _CHUNKS in first else 1


def _items(run_id: RunId, blob: Blob) -> Iterator[dict[str, Any]]:
    """The items of a blob; the first chunk last, since a blob is there once that is."""
    count = max(1, -(-len(blob.data) // CHUNK))
    for number in reversed(range(count)):
        yield BlobItem(
            run_id=run_id,
            name=_chunk_name(blob.name, number) if number else blob.name,
            data=blob.data[number * CHUNK : (number + 1) * CHUNK],
            chunks=count if number == 0 and count > 1 else None,
        ).serialize()


def _chunk_name(name: str, number: int) -> str:
    return f"{number}+{name}"  # a blob's own name never begins with a number
