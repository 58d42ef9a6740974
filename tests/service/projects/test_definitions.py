"""Publishing and loading versions of workflows."""

import threading
from dataclasses import replace

import pytest

from stepwell_engine.adapters.memory.versions import MemoryVersions
from stepwell_engine.core.declared.program import DeclaredProgram
from stepwell_engine.errors import NewerFormat, Problem
from stepwell_engine.ports import Published
from stepwell_engine.service.projects.definitions import Workflows
from tests.api.home import MarkedSecrets
from tests.service.world import START, ManualClock

SQL = {"key": "a", "kind": "sql", "target": "select 1"}
HOOK = {"key": "a", "kind": "webhook", "target": "https://a.example", "secret": "plain-text"}


class CountingVersions(MemoryVersions):
    """Counts what is read, and hands out what a test put in its place."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.instead: Published | None = None

    def get(self, project: str, workflow: str, version: int) -> Published | None:
        self.reads += 1
        return self.instead or super().get(project, workflow, version)


@pytest.fixture
def versions() -> CountingVersions:
    return CountingVersions()


@pytest.fixture
def workflows(versions: CountingVersions) -> Workflows:
    return Workflows(versions, MarkedSecrets(), ManualClock())


def test_a_loaded_definition_carries_sealed_secrets(workflows: Workflows) -> None:
    workflows.publish("demo", "orders", {"steps": [HOOK]})
    loaded = workflows.load("demo", "orders", 1).definition
    assert (loaded.project, loaded.workflow, loaded.version) == ("demo", "orders", 1)
    assert loaded.steps[0].secret == f"sealed(demo):{'plain-text'[::-1]}"


def test_publishing_leaves_the_callers_body_alone(workflows: Workflows) -> None:
    body = {"steps": [dict(HOOK)]}
    published = workflows.publish("demo", "orders", body)
    assert body == {"steps": [HOOK]}
    assert (published.version, published.created_at) == (1, START)


def test_a_version_is_read_once(workflows: Workflows, versions: CountingVersions) -> None:
    workflows.publish("demo", "orders", {"steps": [SQL]})
    first = workflows.load("demo", "orders", 1)
    assert workflows.load("demo", "orders", 1) is first
    assert versions.reads == 1


def test_the_cache_is_bounded(workflows: Workflows, versions: CountingVersions) -> None:
    for _ in range(129):
        workflows.publish("demo", "orders", {"steps": [SQL]})
    for version in range(1, 130):
        workflows.load("demo", "orders", version)
    workflows.load("demo", "orders", 129)
    assert versions.reads == 129
    workflows.load("demo", "orders", 1)
    assert versions.reads == 130


def test_two_installations_share_no_cache(versions: CountingVersions, workflows: Workflows) -> None:
    workflows.publish("demo", "orders", {"steps": [SQL]})
    workflows.load("demo", "orders", 1)
    other = Workflows(MemoryVersions(), MarkedSecrets(), ManualClock())
    with pytest.raises(Problem):
        other.load("demo", "orders", 1)


def test_what_was_missing_is_looked_for_again(workflows: Workflows) -> None:
    with pytest.raises(Problem) as refusal:
        workflows.load("demo", "orders", 1)
    assert refusal.value.code == "not_found"
    workflows.publish("demo", "orders", {"steps": [SQL]})
    assert workflows.load("demo", "orders", 1).definition.version == 1


def test_threads_load_the_same_definition(workflows: Workflows) -> None:
    workflows.publish("demo", "orders", {"steps": [SQL]})
    found: list[DeclaredProgram] = []
    threads = [
        threading.Thread(target=lambda: found.append(workflows.load("demo", "orders", 1)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"steps":[{}]}',
        b'{"steps":[{"key":"a","kind":"magic"}]}',
        b'{"steps":[{"key":"a","kind":"sleep","sleep_for":"soon"}]}',
        b'{"steps":[1]}',
    ],
)
def test_a_damaged_document_is_a_value_error(
    workflows: Workflows, versions: CountingVersions, document: bytes
) -> None:
    versions.publish("demo", "orders", document, True, START)
    with pytest.raises(ValueError, match='version 1 of workflow "orders" cannot be read'):
        workflows.load("demo", "orders", 1)


def test_a_document_of_a_newer_format_is_left_alone(
    workflows: Workflows, versions: CountingVersions
) -> None:
    published = workflows.publish("demo", "orders", {"steps": [SQL]})
    versions.instead = replace(published, format=2)
    for read in (workflows.load, workflows.version):
        with pytest.raises(NewerFormat, match="upgrade this installation"):
            read("demo", "orders", 1)


def test_a_start_resolves_to_the_highest_enabled_version(workflows: Workflows) -> None:
    workflows.publish("demo", "orders", {"steps": [SQL]})
    workflows.publish("demo", "orders", {"enabled": False, "steps": [SQL]})
    assert workflows.enabled("demo", "orders") == 1
    workflows.publish("demo", "orders", {"steps": [SQL]})
    assert workflows.enabled("demo", "orders") == 3


def test_a_disabled_workflow_and_an_unknown_one_are_told_apart(workflows: Workflows) -> None:
    workflows.publish("demo", "orders", {"steps": [SQL]})
    workflows.set_enabled("demo", "orders", False)
    for name, code in (("orders", "workflow_disabled"), ("ghost", "not_found")):
        with pytest.raises(Problem) as refusal:
            workflows.enabled("demo", name)
        assert refusal.value.code == code


def test_a_secret_that_cannot_be_sealed_leaves_nothing_behind(versions: CountingVersions) -> None:
    class Broken(MarkedSecrets):
        def seal(self, plain: str, project: str) -> str:
            raise OSError("no key")

    with pytest.raises(OSError, match="no key"):
        Workflows(versions, Broken(), ManualClock()).publish("demo", "orders", {"steps": [HOOK]})
    assert versions.newest("demo", "orders") is None
