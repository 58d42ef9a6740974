"""How values of a head stand in an attribute of DynamoDB."""

import uuid
from collections.abc import Mapping
from typing import Any, Final

from pynamodb.attributes import Attribute
from pynamodb.constants import BINARY, MAP, NUMBER, STRING

from stepwell_engine.core.run.inbox import InboxMessage, MessageKind
from stepwell_engine.core.run.status import Status

_CODES: Final = {
    Status.PENDING: "p",
    Status.RUNNING: "r",
    Status.SLEEPING: "z",
    Status.WAITING: "w",
    Status.SUCCEEDED: "s",
    Status.FAILED: "f",
    Status.CANCELLED: "c",
    Status.TIMED_OUT: "t",
}
_STATUSES: Final = {code: status for status, code in _CODES.items()}
_TEXT: Final = b"\xff"  # before an id that is no UUID; no UUID of a version in use begins so


class RunIdAttribute(Attribute[str]):
    """A run's id. A UUID takes 16 bytes, in the same order as its text; any other its UTF-8."""

    attr_type = BINARY

    def serialize(self, value: str) -> bytes:
        """Text to bytes."""
        try:
            plain = uuid.UUID(value)
        except ValueError:
            return _TEXT + value.encode()
        if str(plain) != value or plain.bytes[:1] == _TEXT:
            return _TEXT + value.encode()
        return plain.bytes

    def deserialize(self, value: bytes) -> str:
        """Bytes to text."""
        if value[:1] == _TEXT:
            return value[1:].decode()
        return str(uuid.UUID(bytes=bytes(value)))


class IntegerAttribute(Attribute[int]):
    """A whole number."""

    attr_type = NUMBER

    def serialize(self, value: int) -> str:
        """As DynamoDB takes numbers."""
        return str(value)

    def deserialize(self, value: str) -> int:
        """ValueError for a number that is not whole."""
        return int(value)


class StatusAttribute(Attribute[Status]):
    """A run's status as one letter."""

    attr_type = STRING

    def serialize(self, value: Status) -> str:
        """The letter."""
        return _CODES[value]

    def deserialize(self, value: str) -> Status:
        """The status; KeyError for a letter that is none."""
        return _STATUSES[value]


class InboxAttribute(Attribute[Mapping[str, InboxMessage]]):
    """An inbox: a map from ids to lists of kind, name, time, body, blob.

    DynamoDB keeps a map in no order, and clocks differ: beside each message stands its place, the
    head's revision when it came. A message without one, from before there were places, comes first.
    """

    attr_type = MAP

    def serialize(self, value: Mapping[str, InboxMessage]) -> dict[str, Any]:
        """The content of a map; the places are below those of any message that comes later."""
        content: dict[str, Any] = {}
        for place, (message_id, message) in enumerate(value.items(), -len(value)):
            content[message_id] = self.message(message)
            content[self.place_of(message_id)] = {"N": str(place)}
        return content

    def deserialize(self, value: Mapping[str, Any]) -> dict[str, InboxMessage]:
        """The inbox, oldest message first."""
        places = {key: int(cell["N"]) for key, cell in value.items() if "N" in cell}
        messages = {key: self.read(cell["L"]) for key, cell in value.items() if "L" in cell}

        def arrival(entry: tuple[str, InboxMessage]) -> tuple[bool, int, int, str]:
            message_id, message = entry
            place = places.get(self.place_of(message_id))
            return place is not None, place or 0, message.at, message_id

        return dict(sorted(messages.items(), key=arrival))

    @staticmethod
    def place_of(message_id: str) -> str:
        """What the place of a message is called; no message's id begins so."""
        return f"~{message_id}"

    @staticmethod
    def message(message: InboxMessage) -> dict[str, Any]:
        """One value of the map."""
        return {
            "L": [
                {"S": message.kind},
                {"S": message.name},
                {"N": str(message.at)},
                {"NULL": True} if message.body is None else {"B": message.body},
                {"NULL": True} if message.blob is None else {"S": message.blob},
            ]
        }

    @staticmethod
    def read(cells: list[dict[str, Any]]) -> InboxMessage:
        """What `message` made."""
        kind, name, at, body, blob = cells
        return InboxMessage(
            MessageKind(kind["S"]), name["S"], int(at["N"]), body.get("B"), blob.get("S")
        )
