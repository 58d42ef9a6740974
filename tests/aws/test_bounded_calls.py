"""Calls of AWS that an attempt waits for are bounded by what is left of its time."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from stepwell_engine.adapters.aws_clients import Clients
from stepwell_engine.adapters.dynamodb.client import DynamoDB, connect
from stepwell_engine.adapters.dynamodb.resources import DynamoResources
from stepwell_engine.adapters.secrets.kms import KmsSecrets
from stepwell_engine.adapters.sqs.queues import SqsQueues
from stepwell_engine.errors import Unavailable
from stepwell_engine.settings.aws import AwsSettings
from tests.aws.installation import PREFIX, endpoint
from tests.service.world import ManualClock
from tools.loopback import Call, Reply, answering
from tools.moto_home import CONTROL, REGION

ANSWERS = {
    "dynamodb": b"{}",
    "kms": b'{"Plaintext":"c2VjcmV0"}',
    "sqs": b'{"MessageId":"m","MD5OfMessageBody":"c4ca4238a0b923820dcc509a6f75849b"}',
}


@dataclass
class Service:
    """Answers every call alike, the late ones not before the test is over."""

    body: bytes
    late: bool = False
    calls: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def answer(self, _: Call) -> Reply:
        self.calls += 1
        if self.late:
            self.over.wait(60)
        return Reply(200, self.body, {})


@pytest.fixture(params=ANSWERS)
def service(request: pytest.FixtureRequest, settings: AwsSettings) -> Iterator[Service]:
    made = Service(ANSWERS[request.param])
    with answering(made.answer) as url, endpoint(request.param, url):
        yield made
        made.over.set()


@pytest.fixture
def call(service: Service, request: pytest.FixtureRequest) -> Callable[[int | None], object]:
    """The call, within so many ms."""
    match request.node.callspec.params["service"]:
        case "dynamodb":
            resources = DynamoResources(DynamoDB(connect(REGION), ManualClock()), CONTROL)
            return lambda within: resources.get("shop", "queue", "emails", within)
        case "kms":
            secrets = KmsSecrets(Clients(REGION), "key", ManualClock())
            return lambda within: secrets.open("k1.AAAA", "shop", within)
        case _:
            queues = SqsQueues(Clients(REGION), "https://sqs/1/any", PREFIX)
            return lambda within: queues.send("shop", "emails", b"1", 0, within)


@pytest.mark.parametrize("within", [None, 60_000])
def test_a_call_with_time_is_answered(
    service: Service, call: Callable[[int | None], object], within: int | None
) -> None:
    assert call(within) in (None, "secret", "m")


def test_a_call_ends_with_the_time_there_is(
    service: Service, call: Callable[[int | None], object]
) -> None:
    service.late = True
    with pytest.raises(Unavailable):
        call(200)
    assert service.calls == 1


def test_the_second_read_of_an_item_has_what_the_first_one_left(
    settings: AwsSettings,
) -> None:
    service = Service(ANSWERS["dynamodb"])
    with answering(service.answer) as url, endpoint("dynamodb", url):
        database = DynamoDB(connect(REGION), ManualClock())
        with pytest.raises(Unavailable, match="in the time there was"):
            database.get(CONTROL, {"p": {"S": "a"}, "n": {"S": "b"}}, ends=0.0)
    assert service.calls == 0
