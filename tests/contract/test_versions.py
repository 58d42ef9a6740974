"""Workflow versions."""

import pytest

from stepwell_engine.ports import Published, Versions
from tests.contract.heads import NOW


def publish(versions: Versions, workflow: str = "order", enabled: bool = True) -> Published:
    return versions.publish("shop", workflow, workflow.encode(), enabled, NOW)


def test_versions_count_from_one_in_each_workflow(versions: Versions) -> None:
    first = publish(versions)
    assert first == Published("shop", "order", 1, True, NOW, b"order", 1)
    assert publish(versions).version == 2
    assert publish(versions, "refund").version == 1
    assert versions.publish("bank", "order", b"x", True, NOW).version == 1
    assert publish(versions).version == 3


def test_versions_come_back_as_they_were_published(versions: Versions) -> None:
    first = versions.publish("shop", "order", b"\x00\xff", True, NOW)
    second = versions.publish("shop", "order", b"", False, NOW + 1)
    assert versions.get("shop", "order", 1) == first
    assert versions.get("shop", "order", 2) == second
    assert (second.enabled, second.created_at, second.document) == (False, NOW + 1, b"")


def test_what_was_never_published_is_none(versions: Versions) -> None:
    publish(versions)
    for number in (0, 2, -1):
        assert versions.get("shop", "order", number) is None
    for project, workflow in (("shop", "refund"), ("bank", "order")):
        assert versions.get(project, workflow, 1) is None
        assert versions.newest(project, workflow) is None
        assert versions.newest_enabled(project, workflow) is None


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
    versions: Versions, flags: list[bool], expected: int | None
) -> None:
    for enabled in flags:
        publish(versions, enabled=enabled)
    found = versions.newest_enabled("shop", "order")
    assert (found and found.version) == expected
    newest = versions.newest("shop", "order")
    assert newest is not None
    assert newest.version == len(flags)


def test_versions_past_nine_are_ordered_by_number(versions: Versions) -> None:
    for _ in range(11):
        publish(versions)
    newest = versions.newest("shop", "order")
    assert newest is not None
    assert newest.version == 11
    assert newest == versions.newest_enabled("shop", "order")
    assert versions.list("shop", None, 10)[0] == newest


@pytest.mark.parametrize("enabled", [True, False])
def test_the_flag_is_set_on_every_version_and_on_no_other_workflow(
    versions: Versions, enabled: bool
) -> None:
    for flag in (True, False, True):
        publish(versions, enabled=flag)
    others = [
        publish(versions, "refund", not enabled),
        versions.publish("bank", "order", b"x", not enabled, NOW),
    ]
    assert versions.set_enabled("shop", "order", enabled)
    for number in (1, 2, 3):
        version = versions.get("shop", "order", number)
        assert version is not None
        assert version.enabled is enabled
    assert [versions.newest(one.project, one.workflow) for one in others] == others


def test_a_version_published_under_a_disabled_name_is_as_enabled_as_it_says(
    versions: Versions,
) -> None:
    publish(versions)
    versions.set_enabled("shop", "order", False)
    assert versions.newest_enabled("shop", "order") is None
    second = publish(versions)
    assert versions.newest_enabled("shop", "order") == second


def test_the_flag_of_an_unknown_workflow_cannot_be_set(versions: Versions) -> None:
    publish(versions, "refund")
    assert not versions.set_enabled("shop", "order", True)
    assert not versions.set_enabled("bank", "refund", True)


def test_workflows_are_listed_by_name_with_their_newest_version(versions: Versions) -> None:
    for name in ("c", "a", "b", "a"):
        publish(versions, name)
    versions.publish("bank", "d", b"x", True, NOW)
    listed = versions.list("shop", None, 10)
    assert [(one.workflow, one.version) for one in listed] == [("a", 2), ("b", 1), ("c", 1)]
    assert listed[0] == versions.newest("shop", "a")


def test_workflows_are_listed_page_by_page(versions: Versions) -> None:
    for name in "abcde":
        publish(versions, name)
    pages = [versions.list("shop", after, 2) for after in (None, "b", "d", "e")]
    assert [[one.workflow for one in page] for page in pages] == [["a", "b"], ["c", "d"], ["e"], []]
