"""Hints as messages on an SQS queue.

A hint that cannot be sent is logged and dropped: the truth is `wake_at`, from which the next tick
finds its subject again. Each has its project as message group, so that one project's flood does not
hold up the others.
"""

import logging
from typing import Any, Final

from stepwell_engine.adapters.aws_clients import ERRORS, Clients, message_of
from stepwell_engine.adapters.process.counters import Counters
from stepwell_engine.core.values import subject as subjects
from stepwell_engine.core.values.subject import Subject
from stepwell_engine.core.values.units import Ms
from stepwell_engine.limits import MAX_HINT_DELAY, SECOND

BATCH: Final = 10  # messages of one request

FIRST_PAUSE: Final = 5  # seconds until a message that failed is delivered again
LONGEST_PAUSE: Final = 300
_DOUBLINGS: Final = 10  # more than lead to the longest
_ATTEMPTS: Final = 3  # a doubled hint does no harm

log = logging.getLogger(__name__)


class SqsDispatcher:
    """The Dispatcher port: one request per hint."""

    def __init__(
        self, clients: Clients, queue_url: str, alone_queue_url: str, counters: Counters
    ) -> None:
        """Counts `HintsSent` and `HintsLost`. The second queue feeds the lane ALONE."""
        self._clients = clients
        self._queue_urls = {False: queue_url, True: alone_queue_url}
        self._counters = counters

    def hint(self, subject: Subject, delay: Ms = 0, *, alone: bool = False) -> None:
        """Send a hint. ValueError for a delay outside 0 to MAX_HINT_DELAY."""
        message = _message(subject, delay)
        try:
            self._clients.get("sqs", attempts=_ATTEMPTS).send_message(
                QueueUrl=self._queue_urls[alone], **message
            )
        except ERRORS as error:
            self._counters.add("HintsLost")
            log.warning(
                "%s %s: a hint was not sent: %s", subject.kind, subject.id, message_of(error)
            )
        else:
            self._counters.add("HintsSent")


class SqsBatches:
    """The Dispatcher port for many hints in a row: ten per request. The last ones need `flush`."""

    def __init__(self, clients: Clients, queue_url: str, counters: Counters) -> None:
        """Counts `HintsSent` and `HintsLost`."""
        self._clients = clients
        self._queue_url = queue_url
        self._counters = counters
        self._held: list[dict[str, Any]] = []

    def hint(
        self,
        subject: Subject,
        delay: Ms = 0,
        *,
        alone: bool = False,  # noqa: ARG002  a tick does not know who is a suspect
    ) -> None:
        """Send a hint with nine others. ValueError for a delay outside 0 to MAX_HINT_DELAY."""
        self._held.append(_message(subject, delay))
        if len(self._held) == BATCH:
            self.flush()

    def flush(self) -> None:
        """Send what is held."""
        if not self._held:
            return
        held, self._held = self._held, []
        entries = [{"Id": str(place), **message} for place, message in enumerate(held)]
        try:
            answer = self._clients.get("sqs", attempts=_ATTEMPTS).send_message_batch(
                QueueUrl=self._queue_url, Entries=entries
            )
        except ERRORS as error:
            lost, reason = len(held), message_of(error)
        else:
            failed = answer.get("Failed", ())
            lost, reason = len(failed), failed[0].get("Message", "") if failed else ""
        if lost:
            self._counters.add("HintsLost", lost)
            log.warning("%d of %d hints were not sent: %s", lost, len(held), reason)
        if lost < len(held):
            self._counters.add("HintsSent", len(held) - lost)


class SqsRedeliveries:
    """Has messages that were received delivered again in seconds.

    Left alone, one that failed stays hidden for as long as an executor may run.
    """

    def __init__(
        self, clients: Clients, queue_url: str, alone_queue_url: str, counters: Counters
    ) -> None:
        """Counts `HintsHidden`: those for which SQS does not do so."""
        self._clients = clients
        self._queue_urls = {False: queue_url, True: alone_queue_url}
        self._counters = counters

    def again(self, receipt: str, receives: int, *, alone: bool = False) -> None:
        """Deliver a message once more; the pause doubles with each time it was received.

        `alone`: it is one of the second queue.
        """
        pause = min(FIRST_PAUSE << min(receives - 1, _DOUBLINGS), LONGEST_PAUSE)
        try:
            self._clients.get("sqs", attempts=_ATTEMPTS).change_message_visibility(
                QueueUrl=self._queue_urls[alone], ReceiptHandle=receipt, VisibilityTimeout=pause
            )
        except ERRORS as error:
            self._counters.add("HintsHidden")
            log.warning("a message that failed comes late: %s", message_of(error))


def _message(subject: Subject, delay: Ms) -> dict[str, Any]:
    if not 0 <= delay <= MAX_HINT_DELAY:
        raise ValueError(f"a hint's delay must be 0 to {MAX_HINT_DELAY} ms, not {delay}")
    message: dict[str, Any] = {
        "MessageBody": subjects.encode(subject),
        "MessageGroupId": subject.project,
    }
    # SQS counts whole seconds. Rounded up: who comes early would wait at our expense.
    seconds = -(-delay // SECOND)
    if seconds:
        message["DelaySeconds"] = seconds
    return message
