"""The home on AWS is complete, and reaches only what it may."""

from collections.abc import Iterator
from ipaddress import ip_network

import pytest

from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.declared.kinds import ACTION_KINDS
from stepwell_engine.core.run.attempt import Deferred, Outcome
from stepwell_engine.errors import Problem
from stepwell_engine.settings.aws import AwsSettings
from stepwell_engine.wiring.aws import AwsHome, aws
from tests.adapters.attempts import attempt, failure
from tests.aws.installation import clients, installed
from tests.service.world import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def settings(clock: ManualClock) -> Iterator[AwsSettings]:
    with installed(clock) as settings:
        yield settings


@pytest.fixture
def home(settings: AwsSettings, clock: ManualClock) -> Iterator[AwsHome]:
    home = aws(settings, clock, clients())
    yield home
    home.close()


def webhook(home: AwsHome, url: str) -> Outcome:
    return home.engine.advance._tools.runners[Kind.WEBHOOK].run(attempt(Kind.WEBHOOK, url))


def test_every_kind_that_may_be_published_is_performed(home: AwsHome) -> None:
    assert set(home.engine.advance._tools.runners) == ACTION_KINDS


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "10.0.0.1", "169.254.169.254"])
def test_no_private_address_is_reached(home: AwsHome, host: str) -> None:
    failed = failure(webhook(home, f"http://{host}:9/"))
    assert "no public address" in failed.message
    assert not failed.retryable


def test_a_network_that_the_settings_name_is_reached(clock: ManualClock) -> None:
    with installed(clock, ip_network("127.0.0.0/8")) as settings:
        home = aws(settings, clock, clients())
        assert "refused" not in failure(webhook(home, "http://127.0.0.1:9/")).message.split(":")[0]
        assert "no public address" in failure(webhook(home, "http://10.0.0.1:9/")).message
        home.close()


def test_resources_are_those_of_aws(home: AwsHome) -> None:
    resources = home.engine.services.resources
    with pytest.raises(Problem, match="only by url, lambda"):
        resources.put_function("shop", "f", {"command": ["ls"]})
    with pytest.raises(Problem, match="no embedded database"):
        resources.put_database("shop")
    with pytest.raises(Problem, match="over the RDS Data API only"):
        resources.put_database("shop", "postgresql://u:p@h/d")


def test_secrets_are_sealed_by_the_key(home: AwsHome) -> None:
    step = {"key": "pay", "kind": "webhook", "target": "https://a.example", "secret": "hunter2"}
    home.engine.services.workflows.publish("shop", "order", {"steps": [step]})
    loaded = home.engine.services.workflows.load("shop", "order", 1)
    assert str(loaded.definition.steps[0].secret).startswith("k1.")


def test_messages_are_listed_by_no_one(home: AwsHome) -> None:
    home.engine.services.resources.put_queue("shop", "orders")
    with pytest.raises(Problem, match="not_supported"):
        home.engine.services.messages.list("shop", "orders", None, 10, archived=False)
    with pytest.raises(Problem, match="not_found"):
        home.engine.services.messages.list("shop", "other", None, 10, archived=False)


def refuse(monkeypatch: pytest.MonkeyPatch, service: str, attempts: int, call: str) -> None:
    client = clients().get(service, attempts=attempts)

    def refused(**_: object) -> None:
        error = {"Error": {"Code": "AccessDeniedException", "Message": "not allowed"}}
        raise client.exceptions.ClientError(
            {**error, "ResponseMetadata": {"HTTPStatusCode": 400}}, call
        )

    monkeypatch.setattr(client, call, refused)


def test_a_queue_that_takes_nothing_fails_the_attempt_in_words(
    home: AwsHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.engine.services.resources.put_queue("shop", "orders")
    refuse(monkeypatch, "sqs", 1, "send_message")
    enqueue = home.engine.advance._tools.runners[Kind.ENQUEUE]
    failed = failure(enqueue.run(attempt(Kind.ENQUEUE, "orders")))
    assert failed.message == 'the queue "orders" did not take the message: SQS: not allowed'
    assert failed.retryable


def test_a_secret_that_kms_does_not_open_costs_no_attempt(
    home: AwsHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, "kms", 1, "decrypt")
    step = attempt(Kind.WEBHOOK, "https://a.example", secret="k1.aGk=")
    outcome = home.engine.advance._tools.runners[Kind.WEBHOOK].run(step)
    assert outcome == Deferred(
        "the secret of the step cannot be opened now: KMS did not decrypt: not allowed"
    )


def test_a_queue_of_a_step_is_its_projects(home: AwsHome) -> None:
    home.engine.services.resources.put_queue("shop", "orders")
    enqueue = home.engine.advance._tools.runners[Kind.ENQUEUE]
    enqueue.run(attempt(Kind.ENQUEUE, "orders"))
    (message,) = home.engine.services.messages.receive("shop", "orders", 10)
    assert message.body == b'{"amount":4900}'
