"""What an installation lets a project register."""

from collections.abc import Sequence

import pytest

from stepwell_engine.adapters.memory.queues import MemoryQueues
from stepwell_engine.adapters.memory.resources import MemoryResources
from stepwell_engine.adapters.memory.versions import MemoryVersions
from stepwell_engine.errors import (
    CannotList,
    PortRefusal,
    Problem,
    QueueNameInUse,
    QueueNotFound,
    TooLong,
)
from stepwell_engine.ports import Message, Queues, Secrets
from stepwell_engine.service.projects.definitions import Workflows
from stepwell_engine.service.projects.queue_messages import QueueMessages
from stepwell_engine.service.projects.resources import QUEUE, ResourceRegistry
from tests.api.home import MarkedSecrets
from tests.service.world import START, ManualClock


class CloudResources:
    """An installation that calls URLs only and has no database of its own."""

    def __init__(self) -> None:
        self.stored = MemoryResources()
        self.queues = MemoryQueues()
        self.registry = self.registry_with(self.queues, MarkedSecrets())

    def registry_with(self, queues: Queues, secrets: Secrets) -> ResourceRegistry:
        return ResourceRegistry(
            self.stored,
            queues,
            secrets,
            ManualClock(),
            function_kinds=frozenset({"url"}),
            database_kinds=frozenset({"dsn"}),
        )


@pytest.fixture
def cloud() -> CloudResources:
    return CloudResources()


@pytest.mark.parametrize("target", [{"command": ["ls"]}, {"python": "a:b"}])
def test_functions_that_cannot_be_called_are_refused(
    cloud: CloudResources, target: dict[str, object]
) -> None:
    with pytest.raises(Problem, match="not available in this installation, only by url"):
        cloud.registry.put_function("demo", "f", target)


def test_functions_that_can_be_called_are_taken(cloud: CloudResources) -> None:
    cloud.registry.put_function("demo", "f", {"url": "https://a.example"})
    assert cloud.registry.get("demo", "function", "f").config == b'{"url":"https://a.example"}'


def test_without_an_embedded_database_a_dsn_is_needed(cloud: CloudResources) -> None:
    with pytest.raises(Problem, match="no embedded database"):
        cloud.registry.put_database("demo")
    stored = cloud.registry.put_database("demo", "postgresql://u:p@h/d")
    assert stored.sealed is not None
    assert b"p@h" not in stored.config


def test_databases_that_cannot_be_reached_are_refused(cloud: CloudResources) -> None:
    cluster = {
        "cluster": "arn:aws:rds:eu-west-1:123456789012:cluster:orders",
        "secret": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:orders-a1b2c3",
    }
    with pytest.raises(Problem, match='no access to the RDS Data API: give a "dsn", postgres'):
        cloud.registry.put_database("demo", cluster=cluster)
    resources = ResourceRegistry(
        cloud.stored,
        cloud.queues,
        MarkedSecrets(),
        ManualClock(),
        function_kinds=frozenset({"lambda"}),
        database_kinds=frozenset({"cluster"}),
    )
    with pytest.raises(Problem, match='RDS Data API only: give "cluster" and "secret", the ARNs'):
        resources.put_database("demo", "postgresql://u:p@h/d")
    assert resources.put_database("demo", cluster=cluster).sealed is None


def test_a_queue_comes_with_its_resource_in_milliseconds(cloud: CloudResources) -> None:
    cloud.registry.put_queue("demo", "emails", visibility_timeout=7)
    cloud.queues.send("demo", "emails", b"1", START)
    (message,) = cloud.queues.receive("demo", "emails", 1, START)
    assert message.visible_at == START + 7_000


def test_a_refused_queue_leaves_nothing_behind(cloud: CloudResources) -> None:
    with pytest.raises(Problem):
        cloud.registry.put_queue("demo", "emails", visibility_timeout=0)
    with pytest.raises(QueueNotFound):
        cloud.queues.send("demo", "emails", b"1", START)
    assert cloud.registry.list("demo", QUEUE, None, 10) == ([], None)


def test_a_deletion_that_was_cut_short_is_finished_by_the_next(cloud: CloudResources) -> None:
    cloud.registry.put_queue("demo", "emails")
    cloud.queues.delete("demo", "emails")
    cloud.registry.delete("demo", QUEUE, "emails")
    assert cloud.stored.get("demo", QUEUE, "emails") is None


class RefusingQueues(MemoryQueues):
    """Cannot do what it is asked, as queues of a service."""

    def __init__(self, refusal: PortRefusal) -> None:
        super().__init__()
        self.refusal = refusal

    def create(self, project: str, queue: str, visibility: int, max_receives: int) -> None:
        raise self.refusal

    def peek(
        self, project: str, queue: str, after: int | str | None, limit: int, archived: bool
    ) -> Sequence[Message]:
        raise self.refusal


class RefusingSecrets(MarkedSecrets):
    """Takes no secret at all."""

    def seal(self, plain: str, project: str) -> str:
        raise TooLong("a secret has 9 bytes")


@pytest.mark.parametrize(
    ("refusal", "code", "detail"),
    [
        (TooLong("use a shorter name"), "invalid_request", "use a shorter name"),
        (QueueNameInUse("in a minute"), "unavailable", "in a minute"),
        (CannotList("receive them"), "not_supported", "receive them"),
        (QueueNotFound("emails"), "not_found", 'there is no queue "emails" in this project'),
    ],
)
def test_what_a_queue_refuses_is_a_problem(refusal: PortRefusal, code: str, detail: str) -> None:
    messages = QueueMessages(RefusingQueues(refusal), ManualClock())
    with pytest.raises(Problem) as raised:
        messages.list("demo", "emails", None, 10, False)
    assert (raised.value.code, raised.value.detail) == (code, detail)


def test_a_queue_that_cannot_be_created_is_a_problem_and_no_resource(cloud: CloudResources) -> None:
    queues = RefusingQueues(QueueNameInUse("in a minute"))
    with pytest.raises(Problem, match=r"^unavailable: in a minute$"):
        cloud.registry_with(queues, MarkedSecrets()).put_queue("demo", "emails")
    assert cloud.stored.get("demo", QUEUE, "emails") is None


def test_a_secret_that_cannot_be_sealed_is_a_problem(cloud: CloudResources) -> None:
    registry = cloud.registry_with(cloud.queues, RefusingSecrets())
    with pytest.raises(Problem, match=r"^invalid_request: a secret has 9 bytes$"):
        registry.put_database("demo", "postgresql://u:p@h/d")
    workflows = Workflows(MemoryVersions(), RefusingSecrets(), ManualClock())
    hook = {"key": "a", "kind": "webhook", "target": "https://a.example", "secret": "plain-text"}
    with pytest.raises(Problem, match=r"^invalid_request: a secret has 9 bytes$"):
        workflows.publish("demo", "orders", {"steps": [hook]})
