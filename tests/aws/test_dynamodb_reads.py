"""What must be read as it stands, on a DynamoDB whose other reads lag behind every write."""

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from stepwell_engine.adapters.dynamodb.blobs import CHUNK
from stepwell_engine.adapters.dynamodb.client import DynamoDB
from stepwell_engine.adapters.dynamodb.grants import DynamoGrants
from stepwell_engine.adapters.dynamodb.projects import DynamoProjects
from stepwell_engine.adapters.dynamodb.resources import DynamoResources
from stepwell_engine.adapters.dynamodb.runs import DynamoRuns
from stepwell_engine.adapters.dynamodb.versions import DynamoVersions
from stepwell_engine.adapters.process.system import SystemClock
from stepwell_engine.core.run.head import Blob
from stepwell_engine.core.run.inbox import Slot
from stepwell_engine.ports import Delivered, Grant, Project, Refused, Resource
from tests.contract.heads import NOW, RUN, a_head, put, some_message
from tools.moto_home import CONTROL, RUNS, SHARDS, DynamoHome, client


class Lagging:
    """A client whose eventually consistent reads of a table show nothing of what was written."""

    def __getattr__(self, name: str) -> Any:
        return getattr(client(), name)

    def get_item(self, **arguments: Any) -> Any:
        return client().get_item(**arguments) if arguments.get("ConsistentRead") else {}

    def batch_get_item(self, **arguments: Any) -> Any:
        asked = arguments["RequestItems"]
        fresh = {name: one for name, one in asked.items() if one.get("ConsistentRead")}
        if not fresh:
            return {"Responses": {}, "UnprocessedKeys": {}}
        return client().batch_get_item(RequestItems=fresh)

    def query(self, **arguments: Any) -> Any:
        """An index is behind in any case: nothing may rely on it."""
        fresh = arguments.get("ConsistentRead") or "IndexName" in arguments
        return client().query(**arguments) if fresh else {"Items": []}


@pytest.fixture
def home() -> Iterator[DynamoHome]:
    opened = DynamoHome()
    yield opened
    opened.close()


@pytest.fixture
def database(home: DynamoHome) -> DynamoDB:
    return DynamoDB(cast(Any, Lagging()), SystemClock())


@pytest.fixture
def runs(database: DynamoDB) -> DynamoRuns:
    return DynamoRuns(database, RUNS, SHARDS)


def test_a_head_is_read_as_it_stands(runs: DynamoRuns) -> None:
    head = put(runs, a_head(idempotency_key="k"))
    assert runs.get(RUN) == head
    assert runs.by_key("shop", "order", "k") == head
    assert runs.create(a_head("other", idempotency_key="k")) == Refused(head)


@pytest.mark.parametrize("size", [1, CHUNK + 1, 2 * CHUNK + 1])
def test_blobs_are_read_as_they_stand(runs: DynamoRuns, size: int) -> None:
    stored = {name: name.encode() * size for name in ("a", "b")}
    runs.create(a_head(), [Blob(name, data) for name, data in stored.items()])
    assert runs.blob(RUN, "a") == stored["a"]
    assert runs.blobs(RUN, ["a", "b", "c"]) == stored


def test_a_delivery_sees_what_came_a_moment_before(runs: DynamoRuns) -> None:
    put(runs, a_head())
    body = Blob("m.1", b"x")
    first = runs.deliver(RUN, "m", some_message(), NOW, body, key="k")
    assert isinstance(first, Delivered)
    assert first.head == runs.get(RUN)
    again = runs.deliver(RUN, "other", some_message(), NOW + 7, body, key="k")
    assert again == Delivered(first.head, first.at)
    assert runs.overflow(RUN, 1, 1) == {1: Slot("m", some_message(), "k")}
    runs.cancel(RUN, NOW)
    again = runs.deliver(RUN, "other", some_message(), NOW + 7, body, key="k")
    assert again == Delivered(runs.get(RUN), first.at)


def test_a_delivery_without_a_key_sees_what_came_a_moment_before(runs: DynamoRuns) -> None:
    put(runs, a_head())
    first = runs.deliver(RUN, "m", some_message(), NOW, None)
    assert isinstance(first, Delivered)
    again = runs.deliver(RUN, "m", some_message(), NOW + 7, Blob("m.1", b"x"))
    assert again == Delivered(first.head, first.at)


def test_a_definition_is_there_once_it_is_published(database: DynamoDB) -> None:
    versions = DynamoVersions(database, CONTROL)
    versions.publish("shop", "order", b"{}", True, NOW)
    published = versions.publish("shop", "order", b'{"steps":[]}', True, NOW)
    assert published.version == 2
    reads: list[Callable[[], object]] = [
        lambda: versions.get("shop", "order", 2),
        lambda: versions.newest("shop", "order"),
        lambda: versions.newest_enabled("shop", "order"),
        lambda: versions.list("shop", None, 10)[0],
    ]
    assert [read() for read in reads] == [published] * len(reads)
    assert versions.set_enabled("shop", "order", False)
    assert versions.newest_enabled("shop", "order") is None


def test_what_is_new_in_a_project_is_there_at_once(database: DynamoDB) -> None:
    projects = DynamoProjects(database, CONTROL)
    project = Project("shop", "local", NOW)
    projects.put(project)
    assert projects.get("shop") == project
    grants = DynamoGrants(database, CONTROL)
    grant = Grant("hash", "session", "local", "owner", "shop", None)
    grants.put(grant)
    assert grants.get("hash") == grant
    resources = DynamoResources(database, CONTROL)
    resource = Resource("shop", "queue", "emails", b"{}", None, NOW)
    resources.put(resource)
    assert resources.get("shop", "queue", "emails") == resource
    assert list(resources.list("shop", "queue", None, 10)) == [resource]
