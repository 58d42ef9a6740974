"""Functions on Lambda, by ARN."""

import logging
from typing import Any, Final

from stepwell_engine import limits
from stepwell_engine.adapters.aws_clients import (
    ERRORS,
    TIMED_OUT,
    TIMEOUT,
    Clients,
    code_of,
    message_of,
)
from stepwell_engine.adapters.runners.attempts import (
    deferred,
    event_of,
    excerpt,
    output_from,
    timed_out,
)
from stepwell_engine.adapters.runners.deadline import Deadline
from stepwell_engine.core.run.attempt import Attempt, Failed, Outcome
from stepwell_engine.core.values import jsonvalue

_REGION: Final = 3  # arn:aws:lambda:REGION:account:function:name

log = logging.getLogger(__name__)


class LambdaFunctions:
    """Invokes a function with the event and waits for it; its result is the output."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def call(self, arn: str, attempt: Attempt, deadline: Deadline) -> Outcome:
        """Invoke once; a function that takes longer goes on unheard."""
        client = self._clients.get("lambda", attempts=1, region=arn.split(":")[_REGION])
        what = f'the function "{attempt.target}"'
        if deadline.passed():
            return deferred(deadline)
        try:
            answer = client.invoke(
                FunctionName=arn,
                InvocationType="RequestResponse",
                Payload=jsonvalue.encode(event_of(attempt)),
                **{TIMEOUT: deadline.seconds},
            )
            body = _read(answer["Payload"])
        except TIMED_OUT:
            return timed_out(what, deadline)
        except ERRORS as error:
            return _refused(what, arn, error)
        if "FunctionError" in answer:
            return Failed(f"{what} failed: {_error(body)}")
        return output_from(body, f"what {what} returned")


def invoke_later(clients: Clients, arn: str, event: bytes) -> bool:
    """Have Lambda invoke one of our own functions, soon; whether it took that on."""
    try:
        clients.get("lambda", attempts=1).invoke(
            FunctionName=arn, InvocationType="Event", Payload=event
        )
    except ERRORS as error:
        log.warning("%s was not invoked: %s", arn, message_of(error))
        return False
    return True


def _read(stream: Any) -> bytes:
    """The answer's body, or its first MAX_RAW_OUTPUT + 1 bytes."""
    try:
        body: bytes = stream.read(limits.MAX_RAW_OUTPUT + 1)
    finally:
        stream.close()
    return body


def _refused(what: str, arn: str, error: Exception) -> Failed:
    if code_of(error) == "ResourceNotFoundException":
        return Failed(
            f"{what} does not exist on Lambda: {arn}", code="unknown_resource", retryable=False
        )
    return Failed(f"{what} could not be invoked: {message_of(error)}")


def _error(body: bytes) -> str:
    """What a function raised, in its own words."""
    try:
        value = jsonvalue.decode(body)
    except ValueError:
        value = None
    if not isinstance(value, dict) or "errorMessage" not in value:
        return excerpt(body)
    kind = value.get("errorType")
    return f"{kind}: {value['errorMessage']}" if kind else str(value["errorMessage"])
