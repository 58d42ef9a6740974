"""The inboxes of runs in DynamoDB: the steps of a delivery, each one conditional write.

A slot of the overflow is an item beside the head, a key another; slots are left to retention.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from stepwell_engine import limits
from stepwell_engine.adapters.delivery import KeyEntry
from stepwell_engine.adapters.dynamodb.attributes import InboxAttribute
from stepwell_engine.adapters.dynamodb.blobs import Blobs
from stepwell_engine.adapters.dynamodb.client import DynamoDB, Item, Rejected
from stepwell_engine.adapters.dynamodb.commits import number
from stepwell_engine.adapters.dynamodb.endings import is_of
from stepwell_engine.adapters.dynamodb.heads import KIND, RUN_ID, from_item, key_of
from stepwell_engine.adapters.dynamodb.models import (
    DELIVERY,
    SLOT,
    DeliveryItem,
    HeadItem,
    SlotItem,
)
from stepwell_engine.adapters.dynamodb.writes import IS_LIVE, LIVE_VALUES
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind, Slot
from stepwell_engine.core.values.units import EpochMs, RunId
from stepwell_engine.ports import Done, Refused, Written

_INBOX: Final = HeadItem.inbox.attr_name
_REVISION: Final = HeadItem.revision.attr_name
_FORMAT: Final = HeadItem.format.attr_name
_LAST: Final = HeadItem.overflow_last.attr_name
_COUNT: Final = HeadItem.overflow_count.attr_name
_TOKEN: Final = HeadItem.token.attr_name
_COMMIT: Final = HeadItem.commit.attr_name
_WANTS: Final = HeadItem.wants.attr_name
_WANTS_SEQ: Final = HeadItem.wants_seq.attr_name
_NUMBER: Final = DeliveryItem.number.attr_name
_AT: Final = DeliveryItem.at.attr_name
_SINCE: Final = DeliveryItem.since.attr_name
_VOID: Final = SlotItem.void.attr_name

_WAKE: Final = f", {HeadItem.ready_at.attr_name} = :zero, {HeadItem.wake_at.attr_name} = :now"
_PUT_INLINE: Final = f"SET {_INBOX}.#id = :message, {_INBOX}.#place = {_REVISION}"
_IS_NEW_MESSAGE: Final = f"{IS_LIVE} AND attribute_not_exists({_INBOX}.#id)"
_IS_EMPTY: Final = f"(attribute_not_exists({_COUNT}) OR {_COUNT} = :zero)"
_HAS_ROOM: Final = f"size({_INBOX}) < :most AND {_IS_EMPTY}"
_SET_LAST: Final = f"SET {_LAST} = :number, {_FORMAT} = :format"
_IS_FIRST: Final = f"{IS_LIVE} AND attribute_not_exists({_LAST})"
_IS_NEXT: Final = f"{IS_LIVE} AND {_LAST} = :before"
_NEVER_PARKED: Final = f"attribute_not_exists({_WANTS_SEQ}) AND {_COMMIT} = :zero"
_WANTS_ANOTHER: Final = f"{_WANTS_SEQ} = {_COMMIT} AND {_WANTS} <> :name"
_IS_QUIET: Final = f"(attribute_exists({_TOKEN}) OR {_NEVER_PARKED} OR {_WANTS_ANOTHER})"
_IS_NEW: Final = f"attribute_not_exists({RUN_ID})"
_IS_THERE: Final = f"attribute_exists({RUN_ID})"


class DynamoInboxes:
    """The inboxes in the table of runs."""

    def __init__(self, database: DynamoDB, table: str, blobs: Blobs) -> None:
        self._database = database
        self._table = table
        self._blobs = blobs

    def overflow(self, run_id: RunId, first: int, last: int) -> Mapping[int, Slot]:
        """The slots with these numbers."""
        key = key_of(run_id)[RUN_ID]
        found: dict[int, Slot] = {}
        start: dict[str, Item] = {}
        while True:
            items, following = self._database.query(
                self._table,
                KeyConditionExpression=f"{RUN_ID} = :run AND {KIND} BETWEEN :first AND :last",
                ExpressionAttributeValues={
                    ":run": key,
                    ":first": {"S": _slot_name(first)},
                    ":last": {"S": _slot_name(last)},
                },
                ConsistentRead=True,
                **start,
            )
            for item in items:
                found[int(item[KIND]["S"].removeprefix(SLOT))] = _slot(item)
            if following is None:
                return found
            start = {"ExclusiveStartKey": following}

    # --- the steps of a delivery --------------------------------------------------------------

    def get(self, run_id: RunId) -> Head | None:
        """The head as it stands."""
        item = self._database.get(self._table, key_of(run_id))
        return None if item is None else from_item(item)

    def key_entry(self, run_id: RunId, key: str) -> KeyEntry | None:
        """What is stored for a key."""
        item = self._database.get(self._table, key_of(run_id, f"{DELIVERY}{key}"))
        return None if item is None else _entry(item)

    def put_body(self, run_id: RunId, blob: Blob) -> None:
        """Put the body of a message."""
        self._blobs.put_if_absent(run_id, blob)

    def put_inline(
        self, run_id: RunId, message_id: str, message: InboxMessage, now: EpochMs, quiet: bool
    ) -> Written:
        """Put a message into the head. TooLarge if its item has no room."""
        wake = _Wake.of(message.name, now, quiet)
        conditions = [_IS_NEW_MESSAGE, *wake.conditions]
        values = {**wake.values, ":message": InboxAttribute.message(message), ":one": number(1)}
        if message.kind is MessageKind.SIGNAL:
            conditions.append(_HAS_ROOM)
            # Each has its place beside it.
            values[":most"] = number(2 * limits.INLINE_MESSAGES)
        names = {"#id": message_id, "#place": InboxAttribute.place_of(message_id)}
        update = f"{_PUT_INLINE}{wake.update} ADD {_REVISION} :one"
        return self._update(run_id, update, conditions, values, names)

    def put_slot(self, run_id: RunId, number: int, slot: Slot) -> Slot | None:
        """Put a slot, unless there is one."""
        item = SlotItem(
            run_id=run_id,
            name=_slot_name(number),
            id=slot.id,
            key=slot.key,
            void=slot.void or None,
            generation=slot.generation or None,
        ).serialize()
        item[SlotItem.message.attr_name] = InboxAttribute.message(slot.message)
        met = self._database.put(self._table, item, _IS_NEW)
        return None if met is None else _slot(_there(met))

    def put_key(
        self, run_id: RunId, key: str, entry: KeyEntry, instead: KeyEntry | None = None
    ) -> KeyEntry | None:
        """Put a key, unless it is there, or in place of one that has a number."""
        numbered = entry.number is not None
        item = DeliveryItem(
            run_id=run_id,
            name=f"{DELIVERY}{key}",
            at=None if numbered else entry.at,
            number=entry.number,
            since=entry.at if numbered else None,
        ).serialize()
        # What is replaced counts for nobody: whoever comes first replaces it, by any number.
        condition, values = _IS_NEW, {}
        if instead is not None and instead.number is not None:
            condition, values = f"{_NUMBER} = :old", {":old": number(instead.number)}
        met = self._database.put(self._table, item, condition, values)
        return None if met is None else _entry(_there(met))

    def make_void(self, run_id: RunId, number: int) -> None:
        """A slot does not count."""
        self._database.update(
            self._table,
            key_of(run_id, _slot_name(number)),
            UpdateExpression=f"SET {_VOID} = :yes",
            ConditionExpression=_IS_THERE,
            ExpressionAttributeValues={":yes": {"BOOL": True}},
        )

    def count(
        self, run_id: RunId, number: int, name: str, now: EpochMs, quiet: bool, generation: int
    ) -> Written:
        """Let a slot count."""
        wake = _Wake.of(name, now, quiet)
        condition, values = _next(number)
        of, more = is_of(generation, ":generation")
        condition, values = f"{condition} AND {of}", values | more
        update = f"{_SET_LAST}{wake.update} ADD {_REVISION} :one, {_COUNT} :one"
        values |= {**wake.values, ":one": {"N": "1"}}
        return self._update(run_id, update, [condition, *wake.conditions], values)

    def count_void(self, run_id: RunId, number: int) -> Written:
        """Pass over a slot."""
        condition, values = _next(number)
        return self._update(run_id, _SET_LAST, [condition], values)

    def _update(
        self,
        run_id: RunId,
        update: str,
        conditions: list[str],
        values: Mapping[str, Any],
        names: Mapping[str, str] | None = None,
    ) -> Written:
        written = self._database.update(
            self._table,
            key_of(run_id),
            UpdateExpression=update,
            ConditionExpression=" AND ".join(conditions),
            ExpressionAttributeValues={**LIVE_VALUES, **values},
            **({"ExpressionAttributeNames": names} if names else {}),
        )
        if isinstance(written, Rejected):
            return Refused(None if written.item is None else from_item(written.item))
        return Done(from_item(written))


@dataclass(frozen=True, slots=True)
class _Wake:
    """What wakes the run in a write, or requires that it need not be woken."""

    update: str
    conditions: tuple[str, ...]
    values: Mapping[str, Any]

    @classmethod
    def of(cls, name: str, now: EpochMs, quiet: bool) -> "_Wake":
        """For a signal `name`."""
        if quiet:
            return cls("", (_IS_QUIET,), {":name": {"S": name}, ":zero": number(0)})
        return cls(_WAKE, (), {":now": number(now), ":zero": number(0)})


def _next(slot: int) -> tuple[str, dict[str, Any]]:
    """That a slot is the next to count, and the values for it."""
    if slot == 1:
        return _IS_FIRST, {":number": number(1)}
    return _IS_NEXT, {":number": number(slot), ":before": number(slot - 1)}


def _slot_name(number: int) -> str:
    return f"{SLOT}{number:010}"


def _slot(item: Item) -> Slot:
    stored = SlotItem.from_raw_data({**item, SlotItem.message.attr_name: {"NULL": True}})
    message = InboxAttribute.read(item[SlotItem.message.attr_name]["L"])
    return Slot(stored.id, message, stored.key, bool(stored.void), stored.generation or 0)


def _entry(item: Item) -> KeyEntry:
    if _NUMBER in item:
        return KeyEntry(int(item[_NUMBER]["N"]), int(item[_SINCE]["N"]))
    return KeyEntry(None, int(item[_AT]["N"]))


def _there(met: Rejected) -> Item:
    if met.item is None:
        raise LookupError("an item that is there was not returned")
    return met.item
