"""Runs in DynamoDB."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from stepwell_engine.adapters.delivery import deliver
from stepwell_engine.adapters.dynamodb.blobs import Blobs
from stepwell_engine.adapters.dynamodb.client import DynamoDB, Item, Throttled
from stepwell_engine.adapters.dynamodb.due import DueIndex
from stepwell_engine.adapters.dynamodb.endings import Endings
from stepwell_engine.adapters.dynamodb.heads import (
    KIND,
    RUN_ID,
    from_item,
    key_of,
    owner_of,
    readable,
    to_item,
)
from stepwell_engine.adapters.dynamodb.inbox import DynamoInboxes
from stepwell_engine.adapters.dynamodb.models import KEY, LANE_FORMAT, KeyItem
from stepwell_engine.adapters.dynamodb.run_list import RunList, has_time, lane_of
from stepwell_engine.adapters.dynamodb.updates import TURNS
from stepwell_engine.adapters.dynamodb.writes import HeadWrites
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.inbox import InboxMessage, Slot
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.run.status import Status
from stepwell_engine.core.values.units import EpochMs, LeaseToken, ProjectRef, RunId, WorkflowName
from stepwell_engine.errors import Unavailable
from stepwell_engine.limits import DUE_SHARDS
from stepwell_engine.ports import Commit, Delivered, Done, Due, Refused, Revival, Written

_HOLDER: Final = KeyItem.holder.attr_name
_IS_NEW: Final = f"attribute_not_exists({RUN_ID})"


class DynamoRuns:
    """The Runs port on a table of runs (see models)."""

    def __init__(self, database: DynamoDB, table: str, shards: int = DUE_SHARDS) -> None:
        """`shards` of the due index may be raised while there are runs, never lowered.

        A run keeps its shard, and only the shards up to that number are read.
        """
        self._database = database
        self._table = table
        self._shards = shards
        self._blobs = Blobs(database, table)
        self._writes = HeadWrites(database, table)
        self._endings = Endings(database, table)
        self._inboxes = DynamoInboxes(database, table, self._blobs)
        self._due = DueIndex(database, table, shards)
        self._list = RunList(database, table)

    def create(self, head: Head, blobs: Sequence[Blob] = ()) -> Written:
        """Put a new run and its idempotency key; Refused with the run in its way."""
        for blob in blobs:
            self._blobs.put_if_absent(head.run_id, blob)
        if self._list.is_busy(head):
            return self._create(head, lane_of(head))
        try:
            return self._create(head, None)
        except Throttled:
            self._list.widen(head)
            return self._create(head, lane_of(head))

    def _create(self, head: Head, lane: str | None) -> Written:
        """Throttled if there are lanes, and none is given."""
        patient = lane is not None or not has_time(head.run_id)
        if lane is not None:
            head = replace(head, format=max(head.format, LANE_FORMAT))
        item = to_item(head, self._shards, lane)
        if head.idempotency_key is not None:
            return self._create_with_key(head, item, head.idempotency_key, patient)
        rejected = self._database.put(self._table, item, _IS_NEW, patient=patient)
        if rejected is None:
            return Done(head)
        return Refused(None if rejected.item is None else from_item(rejected.item))

    def get(self, run_id: RunId) -> Head | None:
        """The head as it stands."""
        item = self._database.get(self._table, key_of(run_id))
        return None if item is None else from_item(item)

    def by_key(self, project: ProjectRef, workflow: WorkflowName, key: str) -> Head | None:
        """The run that an idempotency key stands for."""
        primary = {RUN_ID: {"B": _key(project, workflow, key)}, KIND: {"S": KEY}}
        item = self._database.get(self._table, primary)
        return None if item is None else self.get(_holder(item))

    def claim(
        self,
        run_id: RunId,
        lease_token: LeaseToken,
        now: EpochMs,
        lease_expires_at: EpochMs,
        lane: Lane = Lane.HOST,
    ) -> Written:
        """Take the lease; own token: had it already."""
        return self._writes.claim(run_id, lease_token, now, lease_expires_at, lane)

    def extend(
        self, run_id: RunId, lease_token: LeaseToken, lease_expires_at: EpochMs, wake_at: EpochMs
    ) -> Written:
        """Move the end of a held lease."""
        return self._writes.extend(run_id, lease_token, lease_expires_at, wake_at)

    def commit(self, commit: Commit) -> Written:
        """One step forward. Blobs of a commit that is then refused stay: nothing refers to them."""
        for blob in commit.blobs:
            self._blobs.put(commit.run_id, blob)
        return self._writes.commit(commit)

    def let_go(self, commit: Commit) -> bool:
        """One step forward, whatever the format."""
        for blob in commit.blobs:
            self._blobs.put(commit.run_id, blob)
        return self._writes.let_go(commit)

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
        """Put a message into the inbox, in the head or beside it; with a key, once."""
        return deliver(self._inboxes, run_id, message_id, message, now, blob, key, seen)

    def overflow(self, run_id: RunId, first: int, last: int) -> Mapping[int, Slot]:
        """The slots with these numbers."""
        return self._inboxes.overflow(run_id, first, last)

    def cancel(
        self, run_id: RunId, now: EpochMs, cascade: bool = False, generation: int = 0
    ) -> Written:
        """End a live run; its lease stays."""
        return self._endings.cancel(run_id, now, cascade, generation)

    def time_out(self, run_id: RunId, now: EpochMs, generation: int) -> Written:
        """End a live run that is late; its lease stays."""
        return self._endings.time_out(run_id, now, generation)

    def revive(self, revival: Revival) -> Written:
        """Let a run that has ended go on."""
        for blob in revival.blobs:
            self._blobs.put(revival.run_id, blob)
        return self._endings.revive(revival)

    def close(
        self, run_id: RunId, lease_token: LeaseToken, commit_seq: int, journal: bytes
    ) -> Written:
        """Settle a stopped run whose lease is over."""
        return self._endings.close(run_id, lease_token, commit_seq, journal)

    def mark_notified(self, run_id: RunId, generation: int = 0) -> Written:
        """Nobody is to be notified any more."""
        return self._endings.mark_notified(run_id, generation)

    def due(self, before: EpochMs, cursor: str | None, limit: int) -> tuple[list[Due], str | None]:
        """A page of the heads with wake_at <= before; a last page may be empty."""
        return self._due.page(before, cursor, limit)

    def list(
        self,
        project: ProjectRef,
        workflow: WorkflowName,
        before: str | None,
        limit: int,
        status: Status | None,
    ) -> list[Head]:
        """Heads of a workflow, newest first; those of a newer format left out.

        Read from an index, so that a run may show up a moment late.
        """
        keys = self._list.keys(owner_of(project, workflow), before, limit)
        found: list[Head] = []
        while len(found) < limit:
            some = list(islice(keys, limit))
            found += [head for head in self._heads(some) if status in (None, head.status)]
            if len(some) < limit:
                break
        return found[:limit]

    def blob(self, run_id: RunId, name: str) -> bytes | None:
        """A blob's data."""
        return self._blobs.get(run_id, [name]).get(name)

    def blobs(self, run_id: RunId, names: Sequence[str]) -> Mapping[str, bytes]:
        """The data of those that exist."""
        return self._blobs.get(run_id, names)

    def _create_with_key(self, head: Head, item: Item, key: str, patient: bool) -> Written:
        owned = KeyItem(key=_key(head.project, head.workflow, key), holder=head.run_id).serialize()
        condition: str = _IS_NEW
        values: dict[str, Any] = {}
        for _ in range(TURNS):
            writes = [self._put(item, _IS_NEW, {}), self._put(owned, condition, values)]
            token = str(uuid.uuid4())
            rejected = self._database.transact(token, writes, patient=patient)
            if not rejected:
                return Done(head)
            of_head, of_key = rejected
            if of_key is not None and of_key.item is not None:
                holder = self.get(_holder(of_key.item))
                if holder is not None:
                    return Refused(holder)
                # Its run is gone: the key is free, for the first who replaces just this holder.
                condition, values = f"{_HOLDER} = :gone", {":gone": of_key.item[_HOLDER]}
            if of_head is not None and of_head.item is not None:
                return Refused(from_item(of_head.item))
        raise Unavailable(f"an idempotency key changed hands {TURNS} times during one call")

    def _put(self, item: Item, condition: str, values: Mapping[str, Any]) -> Item:
        return {
            "Put": {
                "TableName": self._table,
                "Item": item,
                "ConditionExpression": condition,
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                **({"ExpressionAttributeValues": values} if values else {}),
            }
        }

    def _heads(self, items: Sequence[Item]) -> Sequence[Head]:
        """The heads of index entries, in their order."""
        keys = [{RUN_ID: item[RUN_ID], KIND: item[KIND]} for item in items]
        found = self._database.get_all(self._table, keys, consistent=False)
        heads = {item[RUN_ID]["B"]: from_item(item) for item in found if readable(item)}
        ordered = (heads.get(key[RUN_ID]["B"]) for key in keys)
        return [head for head in ordered if head is not None]


def _key(project: ProjectRef, workflow: WorkflowName, key: str) -> bytes:
    return f"{owner_of(project, workflow)}#{key}".encode()


def _holder(item: Item) -> str:
    return KeyItem.holder.deserialize(item[_HOLDER]["B"])
