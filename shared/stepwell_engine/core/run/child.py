"""A child run, as its parent sees it: what becomes of starting it, and how it ended."""

from dataclasses import dataclass

from stepwell_engine import limits
from stepwell_engine.core.run.attempt import Failed
from stepwell_engine.core.run.decision import CancelChild, StartChild
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind, content_of
from stepwell_engine.core.run.records import Stored
from stepwell_engine.core.run.status import Status
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.core.values.units import EpochMs, RunId


@dataclass(frozen=True, slots=True)
class ChildResult:
    """How a child run ended. `output` is compact JSON, or the parent's blob that holds it."""

    status: Status
    ended_at: EpochMs
    message: str | None = None
    code: str | None = None
    output: bytes | Stored | None = None


@dataclass(frozen=True, slots=True)
class ChildNamed:
    """The id of the child run to start: recorded first, so that after a crash it is that one."""

    start: StartChild
    child: RunId


@dataclass(frozen=True, slots=True)
class ChildStarted:
    """The child run exists."""

    start: StartChild


@dataclass(frozen=True, slots=True)
class ChildNotStarted:
    """No child run could be started."""

    start: StartChild
    failed: Failed


@dataclass(frozen=True, slots=True)
class ChildEnded:
    """A child run was cancelled as its time was up, or had ended by itself just before."""

    cancel: CancelChild
    result: ChildResult


ChildOutcome = ChildNamed | ChildStarted | ChildNotStarted | ChildEnded


def message_of(result: ChildResult) -> tuple[InboxMessage, bytes | None]:
    """The message that notifies a parent of its child's end, and the output if it needs a blob."""
    output = result.output if isinstance(result.output, bytes) else None
    large = output is not None and len(output) > limits.INLINE_MESSAGE
    body = [
        result.status,
        result.message,
        result.code,
        len(output or b""),
        *([] if output is None or large else [jsonvalue.decode(output)]),
    ]
    encoded = jsonvalue.encode(body)
    message = InboxMessage(MessageKind.CHILD, result.status, result.ended_at, encoded)
    return message, output if large else None


def result_of(message: InboxMessage) -> ChildResult:
    """What such a message says."""
    content = content_of(message)
    return ChildResult(
        Status(message.name), message.at, content.error, content.code, content.payload
    )
