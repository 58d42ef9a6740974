"""The inbox of a run: messages that others put there for it.

Every message has the same content, whatever its kind. How that is stored depends on the kind:
`body` is a signal's payload, or the size of the payload in the blob; of a child's end it is
`[status, message, code, size, output?]`, the output left out where it is in the blob.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from stepwell_engine import limits
from stepwell_engine.core.run.records import Stored
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.core.values.units import EpochMs


class MessageKind(StrEnum):
    """What a message tells."""

    SIGNAL = "signal"
    CHILD = "child"


@dataclass(frozen=True, slots=True)
class InboxMessage:
    """A message in a run's inbox, as it is stored; its content is what `content_of` says.

    `name` is a signal's name, or the status with which a child run ended; `at` is when it was
    sent, or the child ended, in ms since the epoch. `blob` is the blob that holds the payload.
    """

    kind: MessageKind
    name: str
    at: EpochMs
    body: bytes | None = None
    blob: str | None = None


@dataclass(frozen=True, slots=True)
class Slot:
    """A message with a number of its own, in the overflow of an inbox beside the head.

    It counts once the head's `overflow_last` is no lower than its number. `key`: the idempotency
    key of its delivery. `void`: another message was delivered with that key before. `generation`:
    the run's, which the message is for; a run that was revived since does not count it.
    """

    id: str
    message: InboxMessage
    key: str | None = None
    void: bool = False
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Content:
    """What a message brings. `error` and `code` are those of a child run that did not succeed."""

    payload: bytes | Stored | None
    error: str | None = None
    code: str | None = None


def content_of(message: InboxMessage) -> Content:
    """The content of a message of any kind."""
    match message.kind:
        case MessageKind.SIGNAL:
            if message.blob is None:
                return Content(message.body)
            size = int(message.body or limits.MAX_SIGNAL_PAYLOAD)  # which was not stored at first
            return Content(Stored(message.blob, size))
        case MessageKind.CHILD:
            _, error, code, size, *inline = jsonvalue.decode(message.body or b"[]")
            if message.blob is not None:
                return Content(Stored(message.blob, size), error, code)
            return Content(jsonvalue.encode(inline[0]) if inline else None, error, code)
        case unknown:
            assert_never(unknown)
