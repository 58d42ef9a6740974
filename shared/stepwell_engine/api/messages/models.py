"""The bodies and query strings of the routes of messages."""

from pydantic import Field

from stepwell_engine import limits
from stepwell_engine.api.models import Body, Flag, Json, Page


class SendMessage(Body):
    """A message for a queue."""

    body: Json = Field(
        description=f"Any JSON value, at most {limits.MAX_MESSAGE:,} bytes as compact JSON."
    )


class ReceiveMessages(Body):
    """How many messages to take."""

    max: int = Field(1, ge=1, le=limits.MAX_RECEIVED)


class MessagePage(Page):
    """One page of a queue's messages."""

    archived: Flag = Field(False, description="The messages of the archive instead.")
