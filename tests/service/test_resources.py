"""What an installation lets a project register."""

import pytest

from stepwell_engine.adapters.memory.queues import MemoryQueues
from stepwell_engine.adapters.memory.resources import MemoryResources
from stepwell_engine.errors import Problem
from stepwell_engine.service.projects.resources import QUEUE, ResourceRegistry
from tests.api.home import MarkedSecrets
from tests.service.world import START, ManualClock


class CloudResources:
    """An installation that calls URLs only and has no database of its own."""

    def __init__(self) -> None:
        self.stored = MemoryResources()
        self.queues = MemoryQueues()
        self.registry = ResourceRegistry(
            self.stored,
            self.queues,
            MarkedSecrets(),
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
    with pytest.raises(KeyError):
        cloud.queues.send("demo", "emails", b"1", START)
    assert cloud.registry.list("demo", QUEUE, None, 10) == ([], None)


def test_a_deletion_that_was_cut_short_is_finished_by_the_next(cloud: CloudResources) -> None:
    cloud.registry.put_queue("demo", "emails")
    cloud.queues.drop("demo", "emails")
    cloud.registry.drop("demo", QUEUE, "emails")
    assert cloud.stored.get("demo", QUEUE, "emails") is None
