"""The runs of a workflow in order of their ids: in one partition, or for busy moments in sixteen.

A partition of DynamoDB takes some 1,000 writes a second. Which run ids are how dense nobody knows
from the ids alone, so a layout that is fixed is either too narrow for 10,000 starts a second or
has a reader of an idle workflow ask many partitions. So a run stands in the partition of its
workflow, until DynamoDB throttles there. Then a mark is put into that partition, for the moment
(1,024 ms) that the run's id is of, and the run goes to one of the workflow's sixteen *lanes*: the
64 ms of its id choose which. A reader meets the mark before any run of that moment. Runs that come
so thick fill a page within two or three lanes.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from stepwell_engine.adapters.dynamodb.attributes import RunIdAttribute
from stepwell_engine.adapters.dynamodb.client import DynamoDB, Item
from stepwell_engine.adapters.dynamodb.heads import KIND, RUN_ID, key_of, owner_of
from stepwell_engine.adapters.dynamodb.models import (
    HEAD,
    HeadItem,
    ListMark,
    RunsOfWorkflow,
)
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.values.units import EpochMs, RunId

SLICE: Final = 64  # ms of ids that stand in one lane, one after the other
LANES: Final = 16
MOMENT: Final = SLICE * LANES  # ms of ids for which one mark says that there are lanes
# So many in a slice are some 1,000 a second, which one partition would not take.
DENSE: Final = 64
_MARKS: Final = 2  # that a page may meet beside its runs
_BACK: Final = MOMENT // 2  # ms: what was written so long ago is in the index by now

_OWNER: Final = HeadItem.owner.attr_name
_BEFORE: Final = f"{_OWNER} = :owner AND {RUN_ID} < :before"
_WITHIN: Final = f"{_OWNER} = :owner AND {RUN_ID} BETWEEN :low AND :high"
_RANDOM_BITS: Final = 80  # of a UUIDv7, below its time
_VERSION: Final = 7
_IDS: Final = RunIdAttribute()


@dataclass(slots=True)
class _Lanes:
    """The slices of a moment that are still to be read, newest first, and what was read of one."""

    slices: list[tuple[bytes, bytes, str]]  # lowest id, highest id, lane
    read: list[Item] = field(default_factory=list)  # the next one last


class RunList:
    """Where new runs are listed, and the list."""

    def __init__(self, database: DynamoDB, table: str) -> None:
        self._database = database
        self._table = table
        self._busy: dict[str, int] = {}  # the latest moment with lanes, by owner

    # --- writing ------------------------------------------------------------------------------

    def is_busy(self, head: Head) -> bool:
        """Whether a new run goes to a lane at once.

        That is so for the rest of a moment; and for a further one, while there are still as many.
        """
        owner, at = owner_of(head.project, head.workflow), _time_of(head.run_id)
        latest = self._busy.get(owner)
        if latest is None or at is None:
            return False
        if at // MOMENT == latest:
            return True
        if at // MOMENT != latest + 1 or not self._is_dense(owner, at - _BACK):
            return False
        self.widen(head)
        return True

    def widen(self, head: Head) -> None:
        """The partition of the run's workflow is full: let this moment have lanes."""
        owner, moment = owner_of(head.project, head.workflow), _moment_of(head.run_id)
        mark = ListMark(run_id=_mark_id(moment), kind=_mark_kind(owner), owner=owner)
        self._database.put(self._table, mark.serialize())
        self._busy[owner] = moment

    def _is_dense(self, owner: str, at: EpochMs) -> bool:
        low, high, lane = _slice_of(owner, at)
        items, _ = self._query(lane, _WITHIN, {":low": low, ":high": high}, DENSE)
        return len(items) >= DENSE

    # --- reading ------------------------------------------------------------------------------

    def keys(self, owner: str, before: RunId | None, limit: int) -> Iterator[Item]:
        """The primary keys of the heads with ids below `before`, newest first.

        `limit`: how many are likely to be taken.
        """
        lanes, now = _Lanes([]), self._database.clock.now()
        if before is not None and self._is_marked(owner, before):
            lanes = _lanes_below(owner, _moment_of(before), _IDS.serialize(before), now)
        for entry in self._narrow(owner, before, limit):
            run_id = entry[RUN_ID]["B"]
            yield from self._above(run_id, lanes, limit)
            if entry[KIND]["S"] == HEAD:
                yield entry
            else:
                lanes = _lanes_below(owner, _moment_of(_IDS.deserialize(run_id)), run_id, now)
        yield from self._above(b"", lanes, limit)

    def _is_marked(self, owner: str, run_id: RunId) -> bool:
        if _time_of(run_id) is None:
            return False
        mark = key_of(_mark_id(_moment_of(run_id)), _mark_kind(owner))
        return self._database.get(self._table, mark) is not None

    def _narrow(self, owner: str, before: RunId | None, limit: int) -> Iterator[Item]:
        condition, values = f"{_OWNER} = :owner", {}
        if before is not None:
            condition, values = _BEFORE, {":before": _IDS.serialize(before)}
        start: dict[str, Item] = {}
        while True:
            items, following = self._query(owner, condition, values, limit + _MARKS, **start)
            yield from items
            if following is None:
                return
            start = {"ExclusiveStartKey": following}

    def _above(self, run_id: bytes, lanes: _Lanes, limit: int) -> Iterator[Item]:
        """What the lanes have above an id; a slice is read when it may hold some."""
        while True:
            while lanes.read and lanes.read[-1][RUN_ID]["B"] > run_id:
                yield lanes.read.pop()
            if lanes.read or not lanes.slices or lanes.slices[-1][1] <= run_id:
                return
            low, high, lane = lanes.slices.pop()
            items, following = self._query(lane, _WITHIN, {":low": low, ":high": high}, limit)
            lanes.read = list(reversed(items))
            if following is not None:
                lanes.slices.append((low, _below(items[-1][RUN_ID]["B"]), lane))

    def _query(
        self, owner: str, condition: str, ids: dict[str, bytes], limit: int, **start: Item
    ) -> tuple[Sequence[Item], Item | None]:
        values: dict[str, Any] = {name: {"B": value} for name, value in ids.items()}
        return self._database.query(
            self._table,
            IndexName=RunsOfWorkflow.Meta.index_name,
            KeyConditionExpression=condition,
            ExpressionAttributeValues={":owner": {"S": owner}, **values},
            ScanIndexForward=False,
            Limit=limit,
            **start,
        )


def has_time(run_id: RunId) -> bool:
    """Whether a run may stand in a lane: its id tells the time, as all that are made here do."""
    return _time_of(run_id) is not None


def lane_of(head: Head) -> str:
    """The partition of the index that a run is in at a busy moment."""
    at = _time_of(head.run_id)
    if at is None:
        raise ValueError(f"run {head.run_id}: its id tells no time")
    return _slice_of(owner_of(head.project, head.workflow), at)[2]


def _time_of(run_id: RunId) -> EpochMs | None:
    try:
        value = uuid.UUID(run_id)
    except ValueError:
        return None
    return value.int >> _RANDOM_BITS if value.version == _VERSION else None


def _moment_of(run_id: RunId) -> int:
    return uuid.UUID(run_id).int >> _RANDOM_BITS + MOMENT.bit_length() - 1


def _mark_id(moment: int) -> RunId:
    """The highest id of a moment."""
    return str(uuid.UUID(bytes=_lowest((moment + 1) * MOMENT, less=1)))


def _mark_kind(owner: str) -> str:
    return f"w#{owner}"


def _slice_of(owner: str, at: EpochMs) -> tuple[bytes, bytes, str]:
    """The lowest and highest id of the slice that a time is in, and its lane."""
    place = at // SLICE
    low, high = _lowest(place * SLICE), _lowest((place + 1) * SLICE, less=1)
    return low, high, f"{owner}#{place % LANES}"


def _lanes_below(owner: str, moment: int, run_id: bytes, now: EpochMs) -> _Lanes:
    """The slices with ids below one. None of later than now, or a list would look at them all."""
    times = (moment * MOMENT + place * SLICE for place in range(LANES))
    slices = (_slice_of(owner, at) for at in times if at <= now)
    below = _below(run_id)
    return _Lanes([(low, min(high, below), lane) for low, high, lane in slices if low <= below])


def _lowest(at: EpochMs, less: int = 0) -> bytes:
    return ((at << _RANDOM_BITS) - less).to_bytes(16)


def _below(run_id: bytes) -> bytes:
    return (int.from_bytes(run_id) - 1).to_bytes(16)
