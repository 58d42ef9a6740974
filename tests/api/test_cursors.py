"""A cursor goes on with the list that gave it, and with no other."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest

from stepwell_engine.adapters.process.system import RandomIds
from tests.api.home import PROJECT, Answer, Home, refused, sql
from tests.service.world import START

SECOND = "/v1/projects/second"
EARLY, LATE = "2023-11-14T00:00:00Z", "2023-11-15T00:00:00Z"


@dataclass(frozen=True)
class List:
    """A list of two items or more."""

    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    project: str = PROJECT

    def page(self, home: Home, **query: str) -> Answer:
        asked = {**self.query, **query}
        return home.call("GET", self.path, query=asked, project=self.project)


def furnish(home: Home) -> list[List]:
    """One list of every kind, and of the same kind one of everything else that it could be of."""
    home.services.identity.create_project("org", "second")
    date(home)
    runs = {}
    for name in ("orders", "refunds"):
        home.publish(name, sql("a"), sql("b"))
        runs[name] = started(home, 2, name)
    for name in ("first", "other"):
        home.call("PUT", f"/functions/{name}", {"python": "a:b"})
        home.call("PUT", f"/queues/{name}")
        for number in range(3):
            home.call("POST", f"/queues/{name}/messages", {"body": number})
        for path, body in ((f"/workflows/{name}", {"steps": [sql("a")]}), (f"/queues/{name}", {})):
            home.call("PUT", path, body, project=SECOND)
        archive(home, name)
    return [
        *(List(path) for path in ("/workflows", "/queues", "/functions")),
        *(List(path, project=SECOND) for path in ("/workflows", "/queues")),
        *(List(f"/workflows/{name}/runs") for name in runs),
        List("/workflows/orders/runs", {"status": "pending"}),
        List("/workflows/orders/runs", {"from": EARLY}),
        List("/workflows/orders/runs", {"to": LATE}),
        List("/workflows/orders/runs", {"from": EARLY, "to": LATE}),
        *(List(f"/workflows/orders/runs/{run_id}/steps") for run_id in runs["orders"]),
        *(
            List(f"/queues/{name}/messages", {"archived": archived})
            for name in ("first", "other")
            for archived in ("false", "true")
        ),
    ]


def date(home: Home) -> None:
    """Let the ids of runs carry their times, as those of a real home do."""
    home.services.starts._ids = RandomIds(home.clock)


def started(home: Home, count: int, name: str = "orders") -> list[str]:
    """The ids of so many new runs, a second apart."""
    ids = []
    for _ in range(count):
        ids.append(home.start(name))
        home.clock.sleep(1_000)
    return ids


def archive(home: Home, queue: str) -> None:
    """Move the messages of a queue to its archive, and send others."""
    home.call("PUT", f"/queues/{queue}", {"max_receives": 1})
    for _ in range(2):
        home.call("POST", f"/queues/{queue}/messages/receive", {"max": 10})
        home.clock.sleep(60_000)
    for number in range(2):
        home.call("POST", f"/queues/{queue}/messages", {"body": number})


def test_a_cursor_is_taken_by_its_own_list_alone(home: Home) -> None:
    lists = furnish(home)
    cursors: list[Any] = []
    for one in lists:
        answer = one.page(home, limit="1")
        assert answer.status == 200, (one, answer.text)
        assert answer.body["next_cursor"] is not None, one
        cursors.append(answer.body["next_cursor"])
    for (at, one), (of, cursor) in product(enumerate(lists), enumerate(cursors)):
        answer = one.page(home, cursor=cursor)
        if at == of:
            assert answer.status == 200, (one, answer.text)
        else:
            message = refused(answer, "invalid_request")
            assert "cursor is not one of this list" in message, (one, lists[of])


def test_the_limit_may_change_from_page_to_page_and_a_time_be_written_otherwise(
    home: Home,
) -> None:
    date(home)
    home.publish()
    ids = started(home, 4)
    runs = List("/workflows/orders/runs", {"from": str(START)})
    first = runs.page(home, limit="1").body
    query = {"cursor": first["next_cursor"], "limit": "2", "from": "2023-11-14T23:13:20+01:00"}
    second = runs.page(home, **query).body
    third = runs.page(home, cursor=second["next_cursor"]).body
    pages = [[one["id"] for one in page["items"]] for page in (first, second, third)]
    assert pages == [ids[:2:-1], ids[2:0:-1], ids[:1]]
    assert third["next_cursor"] is None


def test_a_refusal_says_that_the_filters_belong_to_the_list(home: Home) -> None:
    home.publish()
    started(home, 2)
    runs = List("/workflows/orders/runs", {"status": "pending"})
    cursor = runs.page(home, limit="1").body["next_cursor"]
    message = refused(List(runs.path).page(home, cursor=cursor), "invalid_request")
    assert message == (
        "cursor is not one of this list: send the next_cursor of its previous page, unchanged, "
        "and the same filters"
    )


@pytest.mark.parametrize("change", ["padded", "spelt otherwise"])
def test_a_cursor_is_taken_unchanged_only(home: Home, change: str) -> None:
    for name in ("a", "b"):
        home.publish(name)
    cursor = home.call("GET", "/workflows", query={"limit": "1"}).body["next_cursor"]
    assert home.call("GET", "/workflows", query={"cursor": cursor}).status == 200
    padded = cursor + "=" * (-len(cursor) % 4)
    spaced = base64.urlsafe_b64decode(padded).replace(b",", b", ")
    changed = {
        "padded": padded,
        "spelt otherwise": base64.urlsafe_b64encode(spaced).decode().rstrip("="),
    }[change]
    assert changed != cursor
    refused(home.call("GET", "/workflows", query={"cursor": changed}), "invalid_request")
