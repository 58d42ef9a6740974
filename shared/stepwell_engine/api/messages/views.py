"""What the API shows of the messages of queues."""

from typing import Any, NotRequired

from typing_extensions import TypedDict

from stepwell_engine.api.models import Json, Time
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.core.values.times import iso
from stepwell_engine.ports import Message


class SentView(TypedDict):
    """A message that was sent."""

    id: int | str


class MessageView(TypedDict):
    """A message. `receipt`, which deletes it, is there if it was received."""

    id: int | str
    body: Json
    sent_at: Time
    visible_at: Time
    receives: int
    receipt: NotRequired[str]


class MessageList(TypedDict):
    """A page of messages."""

    items: list[MessageView]
    next_cursor: str | None


class ReceivedView(TypedDict):
    """Messages that were received."""

    items: list[MessageView]


def message_view(message: Message) -> MessageView:
    """A message; what is not JSON is shown as text."""
    view: MessageView = {
        "id": message.id,
        "body": _body(message.body),
        "sent_at": iso(message.sent_at),
        "visible_at": iso(message.visible_at),
        "receives": message.receives,
    }
    if message.receipt:
        view["receipt"] = message.receipt
    return view


def _body(data: bytes) -> Any:
    try:
        return jsonvalue.decode(data)
    except ValueError:
        return data.decode(errors="replace")
