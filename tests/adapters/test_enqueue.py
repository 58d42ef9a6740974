"""Steps of the kind enqueue."""

from collections.abc import Callable
from typing import Any

import pytest

from stepwell_engine.adapters.memory.queues import MemoryQueues
from stepwell_engine.adapters.memory.resources import MemoryResources
from stepwell_engine.adapters.runners.enqueue import EnqueueRunner
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import Deferred, Failed
from stepwell_engine.errors import NotWritten, StoreError, Unavailable
from tests.adapters.attempts import NOW, StillClock, attempt, output, resource

UNKNOWN = Failed(
    'this project has no queue "emails": register it with PUT /v1/projects/shop/queues/emails',
    code="unknown_resource",
    retryable=False,
)


@pytest.fixture
def queues() -> MemoryQueues:
    return MemoryQueues()


@pytest.fixture
def runner(resources: MemoryResources, queues: MemoryQueues) -> EnqueueRunner:
    resources.put(resource("queue", "emails", {}))
    queues.create("shop", "emails", 30_000, 5)
    return EnqueueRunner(resources, queues, StillClock())


def test_the_payload_is_sent_and_the_id_is_the_output(
    runner: EnqueueRunner, queues: MemoryQueues
) -> None:
    payloads = [{"template": "welcome"}, [1, "é"], 0, False, None]
    ids = [
        output(runner.run(attempt(Kind.ENQUEUE, "emails", payload=payload))) for payload in payloads
    ]
    found = queues.receive("shop", "emails", 10, NOW)
    assert ids == [{"msg_id": message.id} for message in found]
    assert [message.body.decode() for message in found] == [
        '{"template":"welcome"}',
        '[1,"é"]',
        "0",
        "false",
        "null",
    ]
    assert {message.sent_at for message in found} == {NOW}


def test_a_queue_that_is_not_registered_is_an_unknown_resource(queues: MemoryQueues) -> None:
    queues.create("shop", "emails", 30_000, 5)
    runner = EnqueueRunner(MemoryResources(), queues, StillClock())
    assert runner.run(attempt(Kind.ENQUEUE, "emails")) == UNKNOWN
    assert queues.receive("shop", "emails", 10, NOW) == []


def test_a_queue_that_is_gone_is_an_unknown_resource(
    runner: EnqueueRunner, queues: MemoryQueues
) -> None:
    queues.delete("shop", "emails")
    assert runner.run(attempt(Kind.ENQUEUE, "emails")) == UNKNOWN


def test_a_queue_of_another_project_is_not_found(runner: EnqueueRunner) -> None:
    elsewhere = runner.run(attempt(Kind.ENQUEUE, "emails", project="other"))
    assert isinstance(elsewhere, Failed)
    assert elsewhere.code == "unknown_resource"


@pytest.mark.parametrize("error", [StoreError, Unavailable])
def test_a_queue_that_may_have_taken_the_message_costs_an_attempt(
    runner: EnqueueRunner, queues: MemoryQueues, monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    monkeypatch.setattr(queues, "send", raising(error("SQS does not answer")))
    failed = runner.run(attempt(Kind.ENQUEUE, "emails"))
    text = 'the queue "emails" did not take the message: SQS does not answer'
    assert failed == Failed(text)


def test_a_store_that_refuses_the_message_costs_none(
    runner: EnqueueRunner, queues: MemoryQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "send", raising(NotWritten("database or disk is full")))
    deferred = runner.run(attempt(Kind.ENQUEUE, "emails"))
    text = 'the queue "emails" takes no message now: database or disk is full'
    assert deferred == Deferred(text)


def raising(error: Exception) -> Callable[..., None]:
    def send(*_: object) -> None:
        raise error

    return send
