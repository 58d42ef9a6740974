"""Projects, grants, workflow versions and resources."""

from dataclasses import replace

import pytest

from stepwell_engine.ports import Catalog, Grant, Project, Published, Resource
from tests.contract.heads import NOW

SHOP = Project("shop", "acme-inc", NOW)
GRANT = Grant("ab" * 32, "session", "acme-inc", "owner")
QUEUE = Resource("shop", "queue", "orders", b'{"visibility":30}', None, NOW)


def publish(catalog: Catalog, workflow: str = "order", enabled: bool = True) -> Published:
    return catalog.publish("shop", workflow, workflow.encode(), enabled, NOW)


def test_a_project_comes_back(catalog: Catalog) -> None:
    assert catalog.project("shop") is None
    catalog.put_project(SHOP)
    catalog.put_project(Project("bank", "other", NOW))
    assert catalog.project("shop") == SHOP
    assert catalog.project("bank") == Project("bank", "other", NOW)


def test_a_project_is_replaced(catalog: Catalog) -> None:
    catalog.put_project(SHOP)
    catalog.put_project(replace(SHOP, organization="other"))
    assert catalog.project("shop") == replace(SHOP, organization="other")


@pytest.mark.parametrize(
    "grant",
    [
        GRANT,
        replace(GRANT, expires_at=NOW),
        Grant("cd" * 32, "secret", "acme-inc", "project", "shop"),
        Grant("cd" * 32, "publishable", "acme-inc", None, "shop", 0),
    ],
)
def test_a_grant_comes_back(catalog: Catalog, grant: Grant) -> None:
    assert catalog.grant(grant.token_hash) is None
    catalog.put_grant(grant)
    assert catalog.grant(grant.token_hash) == grant
    assert catalog.grant("00" * 32) is None


def test_a_grant_is_replaced(catalog: Catalog) -> None:
    catalog.put_grant(replace(GRANT, expires_at=NOW))
    catalog.put_grant(GRANT)
    assert catalog.grant(GRANT.token_hash) == GRANT


def test_versions_count_from_one_in_each_workflow(catalog: Catalog) -> None:
    first = publish(catalog)
    assert first == Published("shop", "order", 1, True, NOW, b"order", 1)
    assert publish(catalog).version == 2
    assert publish(catalog, "refund").version == 1
    assert catalog.publish("bank", "order", b"x", True, NOW).version == 1
    assert publish(catalog).version == 3


def test_versions_come_back_as_they_were_published(catalog: Catalog) -> None:
    first = catalog.publish("shop", "order", b"\x00\xff", True, NOW)
    second = catalog.publish("shop", "order", b"", False, NOW + 1)
    assert catalog.version("shop", "order", 1) == first
    assert catalog.version("shop", "order", 2) == second
    assert (second.enabled, second.created_at, second.document) == (False, NOW + 1, b"")


def test_what_was_never_published_is_none(catalog: Catalog) -> None:
    publish(catalog)
    for number in (0, 2, -1):
        assert catalog.version("shop", "order", number) is None
    for project, workflow in (("shop", "refund"), ("bank", "order")):
        assert catalog.version(project, workflow, 1) is None
        assert catalog.newest(project, workflow) is None
        assert catalog.newest_enabled(project, workflow) is None


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([True], 1),
        ([False], None),
        ([True, True], 2),
        ([True, False], 1),
        ([False, True], 2),
        ([False, True, False, False], 2),
        ([False, False], None),
    ],
)
def test_the_newest_enabled_version(
    catalog: Catalog, flags: list[bool], expected: int | None
) -> None:
    for enabled in flags:
        publish(catalog, enabled=enabled)
    found = catalog.newest_enabled("shop", "order")
    assert (found and found.version) == expected
    newest = catalog.newest("shop", "order")
    assert newest is not None
    assert newest.version == len(flags)


def test_versions_past_nine_are_ordered_by_number(catalog: Catalog) -> None:
    for _ in range(11):
        publish(catalog)
    newest = catalog.newest("shop", "order")
    assert newest is not None
    assert newest.version == 11
    assert newest == catalog.newest_enabled("shop", "order")
    assert catalog.workflows("shop", None, 10)[0] == newest


@pytest.mark.parametrize("enabled", [True, False])
def test_the_flag_is_set_on_every_version_and_on_no_other_workflow(
    catalog: Catalog, enabled: bool
) -> None:
    for flag in (True, False, True):
        publish(catalog, enabled=flag)
    others = [
        publish(catalog, "refund", not enabled),
        catalog.publish("bank", "order", b"x", not enabled, NOW),
    ]
    assert catalog.set_enabled("shop", "order", enabled)
    for number in (1, 2, 3):
        version = catalog.version("shop", "order", number)
        assert version is not None
        assert version.enabled is enabled
    assert [catalog.newest(one.project, one.workflow) for one in others] == others


def test_a_version_published_under_a_disabled_name_is_as_enabled_as_it_says(
    catalog: Catalog,
) -> None:
    publish(catalog)
    catalog.set_enabled("shop", "order", False)
    assert catalog.newest_enabled("shop", "order") is None
    second = publish(catalog)
    assert catalog.newest_enabled("shop", "order") == second


def test_the_flag_of_an_unknown_workflow_cannot_be_set(catalog: Catalog) -> None:
    publish(catalog, "refund")
    assert not catalog.set_enabled("shop", "order", True)
    assert not catalog.set_enabled("bank", "refund", True)


def test_workflows_are_listed_by_name_with_their_newest_version(catalog: Catalog) -> None:
    for name in ("c", "a", "b", "a"):
        publish(catalog, name)
    catalog.publish("bank", "d", b"x", True, NOW)
    listed = catalog.workflows("shop", None, 10)
    assert [(one.workflow, one.version) for one in listed] == [("a", 2), ("b", 1), ("c", 1)]
    assert listed[0] == catalog.newest("shop", "a")


def test_workflows_are_listed_page_by_page(catalog: Catalog) -> None:
    for name in "abcde":
        publish(catalog, name)
    pages = [catalog.workflows("shop", after, 2) for after in (None, "b", "d", "e")]
    assert [[one.workflow for one in page] for page in pages] == [["a", "b"], ["c", "d"], ["e"], []]


def test_a_resource_comes_back(catalog: Catalog) -> None:
    assert catalog.resource("shop", "queue", "orders") is None
    catalog.put_resource(QUEUE)
    sealed = replace(QUEUE, kind="function", config=b"", sealed="sealed text")
    catalog.put_resource(sealed)
    assert catalog.resource("shop", "queue", "orders") == QUEUE
    assert catalog.resource("shop", "function", "orders") == sealed
    assert catalog.resource("bank", "queue", "orders") is None


def test_a_resource_is_replaced(catalog: Catalog) -> None:
    catalog.put_resource(replace(QUEUE, sealed="old"))
    catalog.put_resource(QUEUE)
    assert catalog.resource("shop", "queue", "orders") == QUEUE
    assert list(catalog.resources("shop", "queue", None, 10)) == [QUEUE]


def test_resources_of_a_kind_are_listed_by_name_page_by_page(catalog: Catalog) -> None:
    for name in "bdaec":
        catalog.put_resource(replace(QUEUE, name=name))
    catalog.put_resource(replace(QUEUE, kind="function", name="a2"))
    catalog.put_resource(replace(QUEUE, project="bank", name="a3"))
    pages = [catalog.resources("shop", "queue", after, 2) for after in (None, "b", "d", "e")]
    assert [[one.name for one in page] for page in pages] == [["a", "b"], ["c", "d"], ["e"], []]


def test_a_dropped_resource_is_gone_and_no_other(catalog: Catalog) -> None:
    other = replace(QUEUE, name="emails")
    catalog.put_resource(QUEUE)
    catalog.put_resource(other)
    assert catalog.drop_resource("shop", "queue", "orders")
    assert not catalog.drop_resource("shop", "queue", "orders")
    assert not catalog.drop_resource("shop", "function", "emails")
    assert catalog.resource("shop", "queue", "orders") is None
    assert catalog.resource("shop", "queue", "emails") == other
