"""A project's queues on SQS: each a standard queue with a dead-letter queue as its archive.

A queue is named after its project and itself, in the account, region and way of addressing of the
queue of hints; so its URL is known without asking. `now` is SQS's own everywhere.
"""

from collections.abc import Sequence
from typing import Any, Final, NoReturn

from stepwell_engine.adapters.aws_clients import ERRORS, Clients, bounded, code_of, message_of
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.core.values.units import EpochMs, Ms, ProjectRef
from stepwell_engine.errors import (
    CannotList,
    QueueNameInUse,
    QueueNotFound,
    StoreError,
    TooLong,
    Unavailable,
)
from stepwell_engine.limits import DAY, SECOND
from stepwell_engine.ports import Message

LONGEST_NAME: Final = 80
RETENTION: Final = 14 * DAY  # of messages, the longest that SQS has

_SERVER_ERROR: Final = 500
_MISSING: Final = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "QueueDoesNotExist",
    }
)
_DELETED_JUST_NOW: Final = frozenset(
    {"AWS.SimpleQueueService.QueueDeletedRecently", "QueueDeletedRecently"}
)
_NO_RECEIPT: Final = frozenset({"ReceiptHandleIsInvalid", "InvalidParameterValue"})
# Not among the characters that SQS carries; in JSON they can only stand inside of texts.
_ESCAPED: Final = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}


class SqsQueues:
    """The Queues port on SQS. Bodies are JSON.

    What SQS does not offer: messages cannot be listed, come in no strict order, and a receipt
    stays good until its message is deleted. A queue that was dropped cannot be created again for a
    minute.
    """

    def __init__(self, clients: Clients, hints_url: str, prefix: str) -> None:
        """`hints_url` is the URL of any queue of the installation; `prefix` begins all names."""
        self._clients = clients
        self._base = hints_url.rpartition("/")[0]
        self._prefix = prefix

    def create(self, project: ProjectRef, queue: str, visibility: Ms, max_receives: int) -> None:
        """Create a queue and its archive, or change its settings; messages stay."""
        name, archive = self._names(project, queue)
        _check_length(name, archive)
        shared = {
            "MessageRetentionPeriod": str(RETENTION // SECOND),
            "SqsManagedSseEnabled": "true",
        }
        self._ensure(archive, shared)
        arn = self._attributes(archive, "QueueArn")["QueueArn"]
        policy = {"deadLetterTargetArn": arn, "maxReceiveCount": max_receives}
        self._ensure(
            name,
            {
                **shared,
                "VisibilityTimeout": str(visibility // SECOND),
                "RedrivePolicy": jsonvalue.encode(policy).decode(),
            },
        )

    def delete(self, project: ProjectRef, queue: str) -> None:
        """Delete a queue with its archive, the archive first: so it can be done again."""
        name, archive = self._names(project, queue)
        for one in (archive, name):
            try:
                self._call("delete_queue", QueueUrl=self._url(one))
            except QueueNotFound:
                if one == name:
                    raise

    def send(
        self,
        project: ProjectRef,
        queue: str,
        body: bytes,
        now: EpochMs,  # noqa: ARG002
        within: Ms | None = None,
    ) -> str:
        """Append a message; the id that SQS gives it."""
        name, _ = self._names(project, queue)
        text = body.decode().translate(_ESCAPED)
        answer = self._call(
            "send_message", QueueUrl=self._url(name), MessageBody=text, **bounded(within)
        )
        message_id: str = answer["MessageId"]
        return message_id

    def receive(
        self, project: ProjectRef, queue: str, limit: int, now: EpochMs
    ) -> Sequence[Message]:
        """Take up to `limit` visible messages."""
        name, _ = self._names(project, queue)
        visibility = int(self._attributes(name, "VisibilityTimeout")["VisibilityTimeout"]) * SECOND
        answer = self._call(
            "receive_message",
            QueueUrl=self._url(name),
            MaxNumberOfMessages=limit,
            WaitTimeSeconds=0,
            MessageSystemAttributeNames=["SentTimestamp", "ApproximateReceiveCount"],
        )
        return [
            Message(
                id=one["MessageId"],
                body=one["Body"].encode(),
                sent_at=int(one["Attributes"]["SentTimestamp"]),
                receives=int(one["Attributes"]["ApproximateReceiveCount"]),
                receipt=one["ReceiptHandle"],
                visible_at=now + visibility,
            )
            for one in answer.get("Messages", ())
        ]

    def delete_message(self, project: ProjectRef, queue: str, receipt: str) -> bool:
        """Delete a received message; False for what is no receipt of the queue."""
        name, _ = self._names(project, queue)
        try:
            self._call("delete_message", QueueUrl=self._url(name), ReceiptHandle=receipt)
        except _NoReceipt:
            return False
        return True

    def peek(
        self,
        project: ProjectRef,
        queue: str,
        after: int | str | None,  # noqa: ARG002
        limit: int,  # noqa: ARG002
        archived: bool,
    ) -> NoReturn:
        """CannotList: SQS shows messages to those alone who receive them."""
        name, archive = self._names(project, queue)
        self._attributes(name, "QueueArn")
        raise CannotList(
            "messages on SQS cannot be listed without receiving them: receive them, or see how "
            f"many there are in the attributes of the queue {archive if archived else name}",
        )

    def _names(self, project: ProjectRef, queue: str) -> tuple[str, str]:
        """The names on SQS of a queue and of its archive.

        A queue's own name has no dash and no capital, so no two are called the same.
        """
        name = f"{self._prefix}{project}-{queue}"
        return name, f"{name}-Archive"

    def _url(self, name: str) -> str:
        return f"{self._base}/{name}"

    def _ensure(self, name: str, attributes: dict[str, str]) -> None:
        """Create a queue, or give the one that exists these attributes."""
        try:
            self._call("set_queue_attributes", QueueUrl=self._url(name), Attributes=attributes)
        except QueueNotFound:
            self._call("create_queue", QueueName=name, Attributes=attributes)

    def _attributes(self, name: str, attribute: str) -> dict[str, str]:
        answer = self._call(
            "get_queue_attributes", QueueUrl=self._url(name), AttributeNames=[attribute]
        )
        found: dict[str, str] = answer["Attributes"]
        return found

    def _call(self, operation: str, **arguments: Any) -> Any:
        # Once: a message that was sent although the answer was lost would be sent twice.
        client = self._clients.get("sqs", attempts=1)
        try:
            return getattr(client, operation)(**arguments)
        except ERRORS as error:
            raise _translated(error, arguments.get("QueueUrl", "")) from error


def _check_length(name: str, archive: str) -> None:
    if len(archive) > LONGEST_NAME:
        raise TooLong(
            f"on SQS the archive of the queue would be called {archive}, which are {len(archive)} "
            f"characters: at most {LONGEST_NAME} are allowed, so use a shorter name than {name}",
        )


class _NoReceipt(StoreError):
    """What was given as a receipt is none."""


def _translated(error: Exception, url: str) -> Exception:
    code = code_of(error)
    text = f"SQS: {message_of(error)}"
    response = getattr(error, "response", None) or {}  # None if there was no answer
    if code in _MISSING:
        return QueueNotFound(url.rpartition("/")[2])
    if code in _NO_RECEIPT:
        return _NoReceipt(text)
    if code in _DELETED_JUST_NOW:
        return QueueNameInUse(
            "a queue of this name was deleted less than a minute ago, and SQS takes no new one "
            "yet: try again in a minute",
        )
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", _SERVER_ERROR)
    throttled = "Throttl" in code or "OverLimit" in code
    if status >= _SERVER_ERROR or throttled:
        return Unavailable(text, "SQS does not answer")
    return StoreError(text, "SQS refuses")
