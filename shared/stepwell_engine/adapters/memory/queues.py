"""A project's queues in memory."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from stepwell_engine.core.values.units import EpochMs, Ms, ProjectRef
from stepwell_engine.errors import QueueNotFound
from stepwell_engine.ports import Message


@dataclass
class _Queue:
    visibility: Ms
    max_receives: int
    messages: dict[int, Message] = field(default_factory=dict)
    archive: dict[int, Message] = field(default_factory=dict)


class MemoryQueues:
    """The Queues port. Nothing outlives the object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[tuple[str, str], _Queue] = {}
        # Outlives its queue: an id serves as an idempotency key, so none comes twice.
        self._last_ids: dict[tuple[str, str], int] = {}

    def create(self, project: ProjectRef, queue: str, visibility: Ms, max_receives: int) -> None:
        """Create a queue, or change its settings."""
        with self._lock:
            found = self._queues.get((project, queue))
            if found is None:
                self._queues[project, queue] = _Queue(visibility, max_receives)
            else:
                found.visibility, found.max_receives = visibility, max_receives

    def delete(self, project: ProjectRef, queue: str) -> None:
        """Delete a queue with everything in it."""
        with self._lock:
            self._find(project, queue)
            del self._queues[project, queue]

    def send(
        self,
        project: ProjectRef,
        queue: str,
        body: bytes,
        now: EpochMs,
        within: Ms | None = None,  # noqa: ARG002
    ) -> int:
        """Append a message."""
        with self._lock:
            found = self._find(project, queue)
            number = self._last_ids.get((project, queue), 0) + 1
            self._last_ids[project, queue] = number
            found.messages[number] = Message(number, body, now, 0, "", now)
            return number

    def receive(
        self, project: ProjectRef, queue: str, limit: int, now: EpochMs
    ) -> Sequence[Message]:
        """Take up to `limit` visible messages; exhausted ones move to the archive."""
        with self._lock:
            found = self._find(project, queue)
            taken: list[Message] = []
            for number, message in list(found.messages.items()):
                if len(taken) == limit:
                    break
                if message.visible_at > now:
                    continue
                if message.receives >= found.max_receives:
                    found.archive[number] = found.messages.pop(number)
                    continue
                receives = message.receives + 1
                found.messages[number] = replace(
                    message,
                    receives=receives,
                    receipt=f"{number}.{receives}",
                    visible_at=now + found.visibility,
                )
                taken.append(found.messages[number])
            return taken

    def delete_message(self, project: ProjectRef, queue: str, receipt: str) -> bool:
        """Delete a received message, by its newest receipt only."""
        with self._lock:
            messages = self._find(project, queue).messages
            for number, message in messages.items():
                if receipt and message.receipt == receipt:
                    del messages[number]
                    return True
            return False

    def peek(
        self, project: ProjectRef, queue: str, after: int | str | None, limit: int, archived: bool
    ) -> Sequence[Message]:
        """List messages with ids above `after`, by id."""
        above = 0 if after is None else int(after)
        with self._lock:
            found = self._find(project, queue)
            source = found.archive if archived else found.messages
            listed = sorted(number for number in source if number > above)[:limit]
            return [replace(source[number], receipt="") for number in listed]

    def _find(self, project: ProjectRef, queue: str) -> _Queue:
        found = self._queues.get((project, queue))
        if found is None:
            raise QueueNotFound(queue)
        return found
