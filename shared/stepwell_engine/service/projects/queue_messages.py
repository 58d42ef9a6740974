"""The messages of a project's queues, over the API."""

from collections.abc import Sequence
from dataclasses import replace

from stepwell_engine import limits
from stepwell_engine.core.values.excerpt import excerpt
from stepwell_engine.core.values.units import ProjectRef
from stepwell_engine.errors import Problem, QueueNotFound
from stepwell_engine.ports import Clock, Message, Queues
from stepwell_engine.service.paging import any_position, foreign, from_url, listing, page, to_url
from stepwell_engine.service.projects.refusals import as_problems


class QueueMessages:
    """Lists, sends, receives and deletes messages. All raise Problem `not_found` for no queue.

    A receipt is handed out as URL-safe text, because it stands in a path, and names its queue: the
    queue's own may be one of another queue, too.
    """

    def __init__(self, queues: Queues, clock: Clock) -> None:
        self._queues = queues
        self._clock = clock

    def list(
        self, project: ProjectRef, queue: str, given: str | None, limit: int, archived: bool
    ) -> tuple[Sequence[Message], str | None]:
        """Messages in order, without receiving them, and the cursor of the next page.

        Problem `not_supported`.
        """
        of = listing("messages", project, queue, archived)
        after = any_position(of, given)
        try:
            with as_problems():
                found = self._queues.peek(project, queue, after, limit + 1, archived)
        except QueueNotFound:
            raise _unknown(queue) from None
        except ValueError:
            raise foreign() from None
        return page(of, found, limit, lambda one: one.id, lambda one: len(one.body))

    def send(self, project: ProjectRef, queue: str, body: bytes) -> int | str:
        """Append a message, compact JSON; its id. Problem `payload_too_large`."""
        if len(body) > limits.MAX_MESSAGE:
            raise Problem(
                "payload_too_large",
                f"body has {len(body):,} bytes of JSON, at most {limits.MAX_MESSAGE:,} are allowed",
            )
        try:
            return self._queues.send(project, queue, body, self._clock.now())
        except QueueNotFound:
            raise _unknown(queue) from None

    def receive(self, project: ProjectRef, queue: str, limit: int) -> Sequence[Message]:
        """Take up to `limit` messages, hidden from others for the visibility timeout."""
        try:
            taken = self._queues.receive(project, queue, limit, self._clock.now())
        except QueueNotFound:
            raise _unknown(queue) from None
        name = _receipts(project, queue)
        return [replace(one, receipt=to_url(name + one.receipt)) for one in taken]

    def delete(self, project: ProjectRef, queue: str, receipt: str) -> None:
        """Delete a received message. Problem `not_found` if the receipt is not its newest."""
        name = _receipts(project, queue)
        try:
            given = from_url(receipt)
        except ValueError:
            given = ""
        try:
            removed = given.startswith(name) and self._queues.delete_message(
                project, queue, given.removeprefix(name)
            )
        except QueueNotFound:
            raise _unknown(queue) from None
        if not removed:
            raise Problem(
                "not_found",
                "no message of this queue has this receipt: the message was deleted, or received "
                "again since, which gave it another one",
            )


def _receipts(project: ProjectRef, queue: str) -> str:
    return listing("receipts", project, queue)


def _unknown(queue: str) -> Problem:
    return Problem("not_found", f"there is no queue {excerpt(queue)} in this project")
