"""A whole installation on moto: tables, the queue of hints, the key, and the settings that say so.

moto's SQS tells the time by a clock of ours, so that delays and timeouts can be skipped.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol

import pytest
from moto.kms.models import kms_backends
from moto.sqs import models as moto_sqs

from stepwell_engine.adapters.aws_clients import Clients
from stepwell_engine.adapters.dynamodb.client import DynamoDB
from stepwell_engine.settings.aws import AwsSettings, Network
from tools.moto_home import CONTROL, REGION, RUNS, SHARDS, DynamoHome

ACCOUNT = "123456789012"
PREFIX = "stepwell-test-q-"
HINTS = "stepwell-test-hints"
ALONE = "stepwell-test-alone"


class Time(Protocol):
    """A clock that a test moves."""

    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...


@cache
def clients() -> Clients:
    """The clients of all tests: making them costs more than most tests do."""
    return Clients(REGION)


@contextmanager
def installed(clock: Time | None, *allowed: Network) -> Iterator[AwsSettings]:
    """An empty installation. `clock` None leaves moto the machine's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        _one_call_at_a_time(patch)
        if clock is not None:
            _tell_time(patch, clock)
        store = DynamoHome()
        sqs_backend().reset()
        try:
            yield AwsSettings(
                runs_table=RUNS,
                control_table=CONTROL,
                hints_queue_url=_queue(HINTS),
                alone_queue_url=_queue(ALONE),
                key_id=_key(),
                queue_prefix=PREFIX,
                allowed_networks=allowed,
                due_shards=SHARDS,  # moto's time for a tick grows with them
            )
        finally:
            store.close()


@contextmanager
def endpoint(service: str, url: str) -> Iterator[None]:
    """Clients of the service that are made from now on call this URL, which moto lets pass."""
    made = clients()._made
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(f"AWS_ENDPOINT_URL_{service.upper().replace('-', '_')}", url)
        try:
            yield
        finally:
            for key in [key for key in made if key[0] == service]:
                made.pop(key).close()


def sqs_backend() -> Any:
    """moto's own queues."""
    return moto_sqs.sqs_backends[ACCOUNT][REGION]


def waiting(queue: str) -> list[Any]:
    """moto's own messages in a queue, received ones too, in the order in which they were sent."""
    found: list[Any] = sqs_backend().queues[queue]._messages
    return found


def _one_call_at_a_time(patch: pytest.MonkeyPatch) -> None:
    # moto's transactions are not isolated from what other threads do meanwhile.
    lock = threading.RLock()
    send: Callable[..., Any] = DynamoDB._send

    def alone(database: DynamoDB, operation: Callable[..., Any], **arguments: Any) -> Any:
        with lock:
            return send(database, operation, **arguments)

    patch.setattr(DynamoDB, "_send", alone)


def _tell_time(patch: pytest.MonkeyPatch, clock: Time) -> None:
    patch.setattr(moto_sqs, "unix_time_millis", lambda: float(clock.now()))
    patch.setattr(moto_sqs, "unix_time", lambda: clock.now() / 1000)
    # A message of moto's is visible one millisecond after its time.
    visible = property(lambda one: clock.now() >= one.visible_at)
    patch.setattr(moto_sqs.Message, "visible", visible)


def _queue(name: str) -> str:
    client = clients().get("sqs", attempts=1)
    url: str = client.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "5400"})[
        "QueueUrl"
    ]
    return url


def _key() -> str:
    keys = kms_backends[ACCOUNT][REGION].keys
    if not keys:
        clients().get("kms", attempts=1).create_key()
    arn: str = next(iter(keys.values())).arn
    return arn
