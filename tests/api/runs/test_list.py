"""Listing runs over the API."""

from dataclasses import replace

import pytest

from stepwell_engine import limits
from stepwell_engine.adapters.process.system import RandomIds
from stepwell_engine.core.run.status import Status
from tests.api.home import NAP, RUNS, Home, refused
from tests.service.world import START


def test_runs_are_listed_newest_first_page_by_page(home: Home) -> None:
    home.publish()
    started = [home.start() for _ in range(5)]
    first = home.call("GET", RUNS, query={"limit": "2"}).body
    second = home.call("GET", RUNS, query={"limit": "3", "cursor": first["next_cursor"]}).body
    assert [one["id"] for one in first["items"] + second["items"]] == started[::-1]
    assert second["next_cursor"] is None


def test_a_list_shows_100_runs_unless_told_otherwise(home: Home) -> None:
    home.publish()
    for _ in range(limits.MAX_PAGE + 1):
        home.start()
    page = home.call("GET", RUNS).body
    assert len(page["items"]) == limits.MAX_PAGE
    assert len(home.call("GET", RUNS, query={"cursor": page["next_cursor"]}).body["items"]) == 1


def test_a_run_whose_journal_is_of_a_newer_format_is_left_out(home: Home) -> None:
    home.publish()
    first, newer, last = (home.start() for _ in range(3))
    head = home.runs.get(newer)
    assert head is not None
    journal = b"[%d,0,0,null,[],[],[]]" % (limits.RUN_FORMAT + 1)
    home.runs._heads[newer] = replace(head, journal=journal)
    page = home.call("GET", RUNS)
    assert [one["id"] for one in page.body["items"]] == [last, first]


@pytest.mark.parametrize("limit", ["0", "101", "-1", "x", "", "1_0", "+5", " 5", "5.0", "-"])
def test_a_page_has_1_to_100_items(home: Home, limit: str) -> None:
    home.publish()
    answer = home.call("GET", RUNS, query={"limit": limit})
    assert "?limit must be" in refused(answer, "invalid_request")


@pytest.mark.parametrize("limit", ["1", "100"])
def test_the_bounds_of_a_page_are_taken(home: Home, limit: str) -> None:
    home.publish()
    assert home.call("GET", RUNS, query={"limit": limit}).status == 200


def test_runs_are_filtered_by_the_status_that_is_shown(home: Home) -> None:
    home.publish("orders", NAP)
    held, sleeping, pending, cancelled = (home.start() for _ in range(4))
    home.turn(sleeping)
    home.call("POST", f"{RUNS}/{cancelled}/cancel")
    home.runs.claim(held, "token", START, START + 60_000)
    expected = {"running": held, "sleeping": sleeping, "pending": pending, "cancelled": cancelled}
    for status, run_id in expected.items():
        page = home.call("GET", RUNS, query={"status": status}).body
        assert [(one["id"], one["status"]) for one in page["items"]] == [(run_id, status)]
    assert home.call("GET", RUNS, query={"status": "failed"}).body["items"] == []


def test_an_unknown_status_is_refused_with_the_known_ones(home: Home) -> None:
    home.publish()
    message = refused(home.call("GET", RUNS, query={"status": "done"}), "invalid_request")
    for status in Status:
        assert f"'{status}'" in message


def test_a_filter_that_finds_little_goes_on_behind_its_cursor(home: Home) -> None:
    home.publish()
    oldest = home.start()
    for _ in range(25):
        home.start()
    home.runs.claim(oldest, "token", START, START + 60_000)
    query = {"status": "running", "limit": "2"}
    seen: list[str] = []
    pages = 0
    while True:
        page = home.call("GET", RUNS, query=query).body
        pages += 1
        seen += [one["id"] for one in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert seen == [oldest]
    assert pages == 2


T = START  # of the first run below; the others follow a second apart


@pytest.fixture
def dated(home: Home, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Four runs whose ids carry their times."""
    home.publish()
    ids = RandomIds(home.clock)
    monkeypatch.setattr(home.services.starts, "_ids", ids)
    started = []
    for _ in range(4):
        started.append(home.start())
        home.clock.sleep(1_000)
    return started


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"from": str(T + 1_000)}, [3, 2, 1]),
        ({"from": str(T + 1_001)}, [3, 2]),
        ({"to": str(T + 1_000)}, [0]),
        ({"to": str(T + 1_001)}, [1, 0]),
        ({"from": str(T + 1_000), "to": str(T + 3_000)}, [2, 1]),
        ({"from": "2023-11-14T22:13:21Z", "to": "2023-11-14T22:13:22.001Z"}, [2, 1]),
        ({"from": "2023-11-14T23:13:21+01:00"}, [3, 2, 1]),
        ({"from": "2023-11-14T22:13:22"}, [3, 2]),
        ({"to": "2023-11-15"}, [3, 2, 1, 0]),
        ({"from": "2023-11-15"}, []),
        ({"from": "0", "to": "0"}, []),
        ({"from": str(T + 2_000), "to": str(T)}, []),
        ({"from": str(T + 1_000), "status": "pending"}, [3, 2, 1]),
        ({"from": str(T + 1_000), "status": "failed"}, []),
    ],
)
def test_runs_are_filtered_by_the_time_of_their_start(
    home: Home, dated: list[str], query: dict[str, str], expected: list[int]
) -> None:
    page = home.call("GET", RUNS, query=query).body
    assert [dated.index(one["id"]) for one in page["items"]] == expected
    assert page["next_cursor"] is None


def test_a_span_is_read_page_by_page(home: Home, dated: list[str]) -> None:
    query = {"from": str(T + 1_000), "to": str(T + 3_000), "limit": "1"}
    seen = []
    while True:
        page = home.call("GET", RUNS, query=query).body
        seen += [dated.index(one["id"]) for one in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert seen == [2, 1]


@pytest.mark.parametrize("name", ["from", "to"])
@pytest.mark.parametrize(
    "time", ["", "-1", "soon", "1969-12-31", "2023-13-01", "9" * 15, "1.5", "2023-11-14T25:00Z"]
)
def test_a_malformed_time_is_refused(home: Home, name: str, time: str) -> None:
    home.publish()
    message = refused(home.call("GET", RUNS, query={name: time}), "invalid_request")
    assert f"?{name} must be a time since 1970" in message


@pytest.mark.parametrize("time", ["9" * 14, "9999-12-31T23:59:59.999Z"])
def test_the_largest_times_are_taken(home: Home, time: str) -> None:
    home.publish()
    run_id = home.start()
    page = home.call("GET", RUNS, query={"to": time}).body
    assert [one["id"] for one in page["items"]] == [run_id]
