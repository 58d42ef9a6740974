"""Delivering a message to a head: one conditional update, or one transaction with a key's item."""

import uuid
from typing import Any, Final

from stepwell_engine.adapters.dynamodb.blobs import Blobs
from stepwell_engine.adapters.dynamodb.client import DynamoDB, Item, Rejected, TooLarge
from stepwell_engine.adapters.dynamodb.heads import RUN_ID, from_item, key_of
from stepwell_engine.adapters.dynamodb.models import (
    DELIVERY,
    DeliveryItem,
    HeadItem,
    InboxAttribute,
)
from stepwell_engine.adapters.dynamodb.writes import IS_LIVE, LIVE_VALUES, number
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.inbox import InboxMessage
from stepwell_engine.core.values.units import EpochMs, RunId
from stepwell_engine.limits import MAX_PENDING_SIGNALS
from stepwell_engine.ports import Delivered, Refused

SIGNAL: Final = "signal"

_INBOX: Final = HeadItem.inbox.attr_name
_REVISION: Final = HeadItem.revision.attr_name
_AT: Final = DeliveryItem.at.attr_name
_DELIVER: Final = (
    f"SET {_INBOX}.#id = :message, {_INBOX}.#place = {_REVISION}, "
    f"{HeadItem.ready_at.attr_name} = :zero, {HeadItem.wake_at.attr_name} = :now "
    f"ADD {_REVISION} :one"
)
_IS_NEW_MESSAGE: Final = f"{IS_LIVE} AND attribute_not_exists({_INBOX}.#id)"
_HAS_ROOM: Final = f"size({_INBOX}) < :most"
_IS_NEW_KEY: Final = f"attribute_not_exists({RUN_ID})"


class Inboxes:
    """The inboxes in the heads of the table of runs."""

    def __init__(self, database: DynamoDB, table: str, blobs: Blobs) -> None:
        self._database = database
        self._table = table
        self._blobs = blobs

    def deliver(
        self,
        run_id: RunId,
        message_id: str,
        message: InboxMessage,
        now: EpochMs,
        blob: Blob | None,
        key: str | None,
    ) -> Delivered | Refused:
        """Put a message into the inbox, and wake the run.

        A signal that the item has no room for finds a full inbox: signals alone never fill it
        so far that the end of a child does not fit. TooLarge for any other message.
        """
        if blob is not None:
            met = self._met(run_id, message_id, message, key)
            if met is not None:
                return met
            self._blobs.put_if_absent(run_id, blob)
        arguments = _arguments(message_id, message, now)
        try:
            if key is None:
                return self._put(run_id, message_id, message, arguments)
            return self._put_once(run_id, message_id, message, arguments, key)
        except TooLarge:
            if message.kind != SIGNAL:
                raise
            return Refused(self._head(run_id))

    def _put(
        self, run_id: RunId, message_id: str, message: InboxMessage, arguments: Item
    ) -> Delivered | Refused:
        written = self._database.update(self._table, key_of(run_id), **arguments)
        if isinstance(written, Rejected):
            return _answer(written, message_id)
        return Delivered(from_item(written), message.at)

    def _put_once(
        self, run_id: RunId, message_id: str, message: InboxMessage, arguments: Item, key: str
    ) -> Delivered | Refused:
        name = _name(key)
        item = DeliveryItem(run_id=run_id, name=name, at=message.at).serialize()
        common = {"TableName": self._table, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        writes = [
            {"Update": {**common, "Key": key_of(run_id), **arguments}},
            {"Put": {**common, "Item": item, "ConditionExpression": _IS_NEW_KEY}},
        ]
        rejected = self._database.transact(str(uuid.uuid4()), writes)
        if not rejected:
            return Delivered(self._head(run_id), message.at)
        of_head, of_key = rejected
        if of_key is not None and of_key.item is not None:
            return Delivered(self._head(run_id), int(of_key.item[_AT]["N"]))
        return _answer(of_head, message_id)

    def _met(
        self, run_id: RunId, message_id: str, message: InboxMessage, key: str | None
    ) -> Delivered | Refused | None:
        """What would come of a delivery that cannot be made; None of one that can."""
        before = (
            None if key is None else self._database.get(self._table, key_of(run_id, _name(key)))
        )
        head = self._head(run_id)
        if before is not None:
            return Delivered(head, int(before[_AT]["N"]))
        if head is not None and message_id in head.inbox:
            return Delivered(head, head.inbox[message_id].at)
        full = (
            message.kind == SIGNAL and head is not None and len(head.inbox) >= MAX_PENDING_SIGNALS
        )
        return Refused(head) if head is None or not head.live or full else None

    def _head(self, run_id: RunId) -> Head | None:
        item = self._database.get(self._table, key_of(run_id))
        return None if item is None else from_item(item)


def _arguments(message_id: str, message: InboxMessage, now: EpochMs) -> dict[str, Any]:
    """Of the update of a head."""
    condition = _IS_NEW_MESSAGE
    values = {
        **LIVE_VALUES,
        ":message": InboxAttribute.message(message),
        ":now": number(now),
        ":zero": number(0),
        ":one": number(1),
    }
    if message.kind == SIGNAL:
        condition = f"{condition} AND {_HAS_ROOM}"
        values[":most"] = number(2 * MAX_PENDING_SIGNALS)  # each has its place beside it
    return {
        "UpdateExpression": _DELIVER,
        "ConditionExpression": condition,
        "ExpressionAttributeNames": {
            "#id": message_id,
            "#place": InboxAttribute.place_of(message_id),
        },
        "ExpressionAttributeValues": values,
    }


def _answer(rejected: Rejected | None, message_id: str) -> Delivered | Refused:
    """What a head that took no message says: it has that one already, or it cannot take it."""
    head = None if rejected is None or rejected.item is None else from_item(rejected.item)
    there = None if head is None else head.inbox.get(message_id)
    return Refused(head) if there is None else Delivered(head, there.at)


def _name(key: str) -> str:
    return f"{DELIVERY}{key}"
