"""A project's queues, with SQS's delivery rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stepwell_engine.core.values.units import EpochMs, Ms, ProjectRef


@dataclass(frozen=True, slots=True)
class Message:
    """A received message. `receipt` deletes it; `receives` counts deliveries, this one included."""

    id: int | str
    body: bytes
    sent_at: EpochMs
    receives: int
    receipt: str
    visible_at: EpochMs


class Queues(Protocol):
    """Queues of the user's, with SQS's delivery rules: at least once, a visibility timeout.

    A message received more than `max_receives` times moves to the queue's archive.
    All raise QueueNotFound for a queue that does not exist, but create.
    """

    def create(self, project: ProjectRef, queue: str, visibility: Ms, max_receives: int) -> None:
        """Create a queue, or change its settings; messages stay.

        TooLong for a name that does not fit, QueueNameInUse for one that was deleted just now.
        """
        ...

    def delete(self, project: ProjectRef, queue: str) -> None:
        """Delete a queue with its messages and its archive."""
        ...

    def send(
        self,
        project: ProjectRef,
        queue: str,
        body: bytes,
        now: EpochMs,
        within: Ms | None = None,
    ) -> int | str:
        """Append a message; its id.

        `within` (ms) bounds the wait for a queue elsewhere: Unavailable if it takes longer.
        """
        ...

    def receive(
        self, project: ProjectRef, queue: str, limit: int, now: EpochMs
    ) -> Sequence[Message]:
        """Take up to `limit` visible messages, oldest first; hidden for the visibility timeout."""
        ...

    def delete_message(self, project: ProjectRef, queue: str, receipt: str) -> bool:
        """Delete a received message; False if the receipt is no longer the newest."""
        ...

    def peek(
        self, project: ProjectRef, queue: str, after: int | str | None, limit: int, archived: bool
    ) -> Sequence[Message]:
        """List messages in order without receiving them (receipt is empty).

        CannotList where that cannot be done.
        """
        ...
