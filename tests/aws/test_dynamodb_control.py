"""What only the control table of DynamoDB has: two items of a workflow, formats, expiry, sizes."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from stepwell_engine.adapters.dynamodb.client import LONGEST_PAUSE, PATIENCE, DynamoDB
from stepwell_engine.adapters.dynamodb.ticks import DynamoTicks
from stepwell_engine.adapters.dynamodb.versions import DynamoVersions
from stepwell_engine.adapters.process.system import SystemClock
from stepwell_engine.core.values.jsonvalue import encode
from stepwell_engine.errors import NewerFormat, Unavailable
from stepwell_engine.limits import DAY, FORMAT, MAX_DEFINITION
from stepwell_engine.ports import Clock, Grant, Versions
from tests.contract.heads import NOW
from tests.service.world import START, ManualClock
from tools.bill.meter_sizes import item_size
from tools.moto_home import CONTROL, DynamoHome, client


@pytest.fixture
def home() -> Iterator[DynamoHome]:
    opened = DynamoHome()
    yield opened
    opened.close()


@pytest.fixture
def versions(home: DynamoHome) -> Versions:
    return home.versions


class Overtaken(DynamoDB):
    """Others publish before the first of our transactions."""

    def __init__(self, versions: Versions, times: float, clock: Clock) -> None:
        super().__init__(client(), clock, jitter=lambda: 1)
        self._versions = versions
        self._times = times

    def transact(self, token: str, items: Any, *, patient: bool = True) -> Any:
        if self._times:
            self._times -= 1
            self._versions.publish("shop", "order", b"theirs", True, NOW)
        return super().transact(token, items, patient=patient)


@pytest.mark.parametrize("times", [1, 3])
def test_a_publication_that_is_overtaken_takes_the_next_number(
    versions: Versions, times: int
) -> None:
    clock = ManualClock()
    ours = DynamoVersions(Overtaken(versions, times, clock), CONTROL)
    assert ours.publish("shop", "order", b"ours", False, NOW).version == times + 1
    found = [versions.get("shop", "order", number) for number in range(1, times + 3)]
    documents = [version and version.document for version in found]
    assert documents == [b"theirs"] * times + [b"ours", None]
    highest = versions.newest_enabled("shop", "order")
    assert highest is not None
    assert highest.version == times


def test_a_publication_that_is_overtaken_for_ever_gives_up(versions: Versions) -> None:
    clock = ManualClock()
    ours = DynamoVersions(Overtaken(versions, math.inf, clock), CONTROL)
    with pytest.raises(Unavailable, match="each new version of workflow order for 5000 ms"):
        ours.publish("shop", "order", b"ours", True, NOW)
    assert PATIENCE - LONGEST_PAUSE < clock.at - START <= PATIENCE
    newest = versions.newest("shop", "order")
    assert newest is not None
    assert newest.document == b"theirs"


def test_the_flag_and_later_versions_go_together(versions: Versions) -> None:
    def flags() -> list[bool]:
        found = [versions.get("shop", "order", number) for number in range(1, 5)]
        return [version.enabled for version in found if version is not None]

    def publish(enabled: bool) -> None:
        versions.publish("shop", "order", b"x", enabled, NOW)

    publish(True)
    publish(False)
    versions.set_enabled("shop", "order", False)
    publish(True)
    publish(False)
    assert flags() == [False, False, True, False]
    versions.set_enabled("shop", "order", True)
    assert flags() == [True, True, True, True]


def set_format(key: dict[str, Any], number: int) -> None:
    client().update_item(
        TableName=CONTROL,
        Key=key,
        UpdateExpression="SET f = :f",
        ExpressionAttributeValues={":f": {"N": str(number)}},
    )


WORKFLOW = {"p": {"S": "w#shop"}, "k": {"S": "order"}}
VERSION = {"p": {"S": "v#shop#order"}, "k": {"S": "0000000001"}}
CALLS: dict[str, Callable[[Versions], object]] = {
    "publish": lambda versions: versions.publish("shop", "order", b"x", True, NOW),
    "version": lambda versions: versions.get("shop", "order", 1),
    "newest": lambda versions: versions.newest("shop", "order"),
    "newest_enabled": lambda versions: versions.newest_enabled("shop", "order"),
    "set_enabled": lambda versions: versions.set_enabled("shop", "order", False),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_workflow_of_a_newer_format_is_left_alone(home: DynamoHome, name: str) -> None:
    CALLS["publish"](home.versions)
    set_format(WORKFLOW, FORMAT + 1)
    before = home.items(CONTROL)
    with pytest.raises(NewerFormat, match=r"workflow order .* upgrade"):
        CALLS[name](home.versions)
    assert home.items(CONTROL) == before


@pytest.mark.parametrize("name", ["version", "newest", "newest_enabled"])
def test_a_version_of_a_newer_format_is_not_read(versions: Versions, name: str) -> None:
    CALLS["publish"](versions)
    set_format(VERSION, FORMAT + 1)
    with pytest.raises(NewerFormat, match="version 1 of workflow order"):
        CALLS[name](versions)


@pytest.mark.parametrize("key", [WORKFLOW, VERSION])
def test_what_is_of_a_newer_format_is_not_listed(versions: Versions, key: dict[str, Any]) -> None:
    for name in ("a", "order", "z"):
        versions.publish("shop", name, b"x", True, NOW)
    set_format(key, FORMAT + 1)
    assert [one.workflow for one in versions.list("shop", None, 2)] == ["a", "z"]


def test_a_workflow_of_an_older_format_is_read(versions: Versions) -> None:
    CALLS["publish"](versions)
    set_format(WORKFLOW, FORMAT - 1)
    set_format(VERSION, FORMAT - 1)
    found = versions.newest("shop", "order")
    assert found is not None
    assert (found.version, found.format) == (1, FORMAT - 1)
    assert versions.set_enabled("shop", "order", False)


def test_a_grant_vanishes_a_week_after_it_has_expired(home: DynamoHome) -> None:
    grant = Grant("ab" * 32, "session", "acme", "owner", expires_at=NOW)
    home.grants.put(grant)
    home.grants.put(replace(grant, token_hash="cd" * 32, expires_at=None))
    expiring, lasting = home.items(CONTROL)
    assert expiring["t"] == {"N": str((NOW + 7 * DAY) // 1000)}
    assert "t" not in lasting


def test_the_largest_definition_fits_and_takes_little(home: DynamoHome) -> None:
    step = {"key": "step", "kind": "webhook", "target": "https://example.com/hook"}
    document = encode({"steps": [step] * (MAX_DEFINITION // (len(encode(step)) + 1) - 1)})
    assert MAX_DEFINITION - 200 < len(document) <= MAX_DEFINITION
    published = home.versions.publish("shop", "order", document, True, NOW)
    assert home.versions.get("shop", "order", 1) == published
    assert max(map(item_size, home.items(CONTROL))) < 4096


def test_the_last_tick_is_remembered(home: DynamoHome) -> None:
    ticks = DynamoTicks(DynamoDB(client(), SystemClock()), CONTROL)
    assert ticks.last() is None
    ticks.record(NOW)
    ticks.record(NOW + 60_000)
    assert ticks.last() == NOW + 60_000
