"""A project's queues, with SQS's delivery rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Message:
    """A received message. `receipt` deletes it; `receives` counts deliveries, this one included."""

    id: int | str
    body: bytes
    sent_at: int
    receives: int
    receipt: str
    visible_at: int


class Queues(Protocol):
    """Queues of the user's, with SQS's delivery rules: at least once, a visibility timeout.

    A message received more than `max_receives` times moves to the queue's archive.
    All raise QueueNotFound for a queue that does not exist, but create.
    """

    def create(self, project: str, queue: str, visibility: int, max_receives: int) -> None:
        """Create a queue, or change its settings; messages stay.

        TooLong for a name that does not fit, QueueNameInUse if it may fit in a minute.
        """
        ...

    def drop(self, project: str, queue: str) -> None:
        """Delete a queue with its messages and its archive."""
        ...

    def send(self, project: str, queue: str, body: bytes, now: int) -> int | str:
        """Append a message; its id."""
        ...

    def receive(self, project: str, queue: str, limit: int, now: int) -> Sequence[Message]:
        """Take up to `limit` visible messages, oldest first; hidden for the visibility timeout."""
        ...

    def remove(self, project: str, queue: str, receipt: str) -> bool:
        """Delete a received message; False if the receipt is no longer the newest."""
        ...

    def peek(
        self, project: str, queue: str, after: int | str | None, limit: int, archived: bool
    ) -> Sequence[Message]:
        """List messages in order without receiving them (receipt is empty).

        CannotList where that cannot be done.
        """
        ...
