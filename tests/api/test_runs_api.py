"""Listing and cancelling runs over the API, and stores that fail."""

import pytest

from stepwell_engine import limits
from stepwell_engine.adapters.process.system import RandomIds
from stepwell_engine.core.run.attempt import Attempt, Outcome, Succeeded
from stepwell_engine.core.run.status import Status
from stepwell_engine.errors import NewerFormat, Unavailable
from tests.api.home import NAP, RUNS, Home, refused, sql
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


def test_a_cancel_goes_down_to_the_children_if_asked(home: Home) -> None:
    fulfil = {"key": "fulfil", "kind": "subworkflow", "target": "fulfilment"}
    home.publish("orders", fulfil)
    home.publish("fulfilment", NAP)
    for cascade, status in (("true", "cancelled"), ("false", "pending"), (None, "pending")):
        run_id = home.start()
        home.turn(run_id)
        query = {} if cascade is None else {"cascade": cascade}
        answer = home.call("POST", f"{RUNS}/{run_id}/cancel", query=query)
        assert (answer.status, answer.body["status"]) == (200, "cancelled")
        child = home.show(run_id)["steps"][0]["output"]
        shown = home.show(child, "fulfilment")
        assert shown["status"] == status
        assert shown["parent"] == {"run_id": run_id, "workflow": "orders"}


def test_a_cascade_is_true_or_false(home: Home) -> None:
    home.publish()
    run_id = home.start()
    answer = home.call("POST", f"{RUNS}/{run_id}/cancel", query={"cascade": "deep"})
    assert "?cascade must be true or false" in refused(answer, "invalid_request")
    assert home.show(run_id)["status"] == "pending"


@pytest.mark.parametrize("body", [None, {}])
def test_a_live_run_is_cancelled(home: Home, body: object) -> None:
    home.publish("orders", sql("a"), NAP, sql("b"))
    run_id = home.start()
    home.turn(run_id)
    answer = home.call("POST", f"{RUNS}/{run_id}/cancel", body)
    assert answer.status == 200
    assert answer.body == {"id": run_id, "status": "cancelled"}
    shown = home.show(run_id)
    assert (shown["status"], shown["reason"]) == ("cancelled", None)
    assert [(one["key"], one["status"]) for one in shown["steps"]] == [
        ("a", "succeeded"),
        ("nap", "cancelled"),
    ]
    assert shown["steps"][1]["finished_at"] == shown["finished_at"]


def test_a_run_that_is_cancelled_before_it_begins_shows_where_it_stood(home: Home) -> None:
    home.publish("orders", sql("a"), sql("b"))
    run_id = home.start()
    home.call("POST", f"{RUNS}/{run_id}/cancel")
    assert [(one["key"], one["status"]) for one in home.show(run_id)["steps"]] == [
        ("a", "cancelled")
    ]


def test_a_step_in_flight_of_a_cancelled_run_is_running_until_it_is_recorded(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.publish("orders", sql("a"), sql("b"))
    run_id = home.start()

    def run(attempt: Attempt) -> Outcome:
        home.call("POST", f"{RUNS}/{run_id}/cancel")
        shown = home.show(run_id)
        assert (shown["status"], shown["steps"][0]["status"]) == ("cancelled", "running")
        return Succeeded(b"1")

    monkeypatch.setattr(home, "run", run)
    home.turn(run_id)
    shown = home.show(run_id)
    assert (shown["status"], shown["output"]) == ("cancelled", 1)
    assert [(one["key"], one["status"]) for one in shown["steps"]] == [("a", "succeeded")]


def test_an_ended_run_cannot_be_cancelled(home: Home) -> None:
    home.publish()
    run_id = home.start()
    home.turn(run_id)
    answer = home.call("POST", f"{RUNS}/{run_id}/cancel")
    assert answer.status == 409
    assert "succeeded already" in refused(answer, "run_finished")


def test_a_cancel_takes_no_fields(home: Home) -> None:
    home.publish()
    run_id = home.start()
    answer = home.call("POST", f"{RUNS}/{run_id}/cancel", {"why": "x"})
    message = refused(answer, "invalid_request")
    assert message == "$.why is an unknown field: none are allowed"
    assert home.show(run_id)["status"] == "pending"


def test_a_store_that_does_not_answer_is_503(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.publish()

    def lost(*_: object) -> None:
        raise Unavailable("secret address of the store")

    monkeypatch.setattr(home.runs, "create", lost)
    answer = home.call("POST", RUNS)
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert "try again" in refused(answer, "unavailable")
    assert "secret" not in answer.text


def test_a_newer_document_is_503_and_says_to_upgrade(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.publish()
    run_id = home.start()

    def newer(_: str) -> None:
        raise NewerFormat("run 1", 2, 1)

    monkeypatch.setattr(home.runs, "get", newer)
    answer = home.call("GET", f"{RUNS}/{run_id}")
    assert "upgrade this installation" in refused(answer, "unavailable")


def test_a_newer_definition_is_503(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.publish()
    monkeypatch.setattr(limits, "FORMAT", 0)
    answer = home.call("GET", "/workflows/orders")
    assert "upgrade this installation" in refused(answer, "unavailable")


@pytest.mark.parametrize("given", ["yes", "1", "True", "TRUE", "on", ""])
@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/queues/q/messages", "archived"),
        ("PUT", "/workflows/orders", "validate"),
        ("POST", "/workflows/orders/runs/a/cancel", "cascade"),
    ],
)
def test_a_flag_is_true_or_false(home: Home, given: str, method: str, path: str, name: str) -> None:
    answer = home.call(method, path, {} if method == "PUT" else None, query={name: given})
    text = refused(answer, "invalid_request")
    assert f"?{name} must be true or false" in text
