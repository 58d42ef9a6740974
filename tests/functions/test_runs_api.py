"""Starting, reading, waiting for and cancelling runs over the API."""

import json
from typing import Any

import pytest

from stepwell_engine import limits
from stepwell_engine.core.outcome import Act, Failed, Outcome, Succeeded
from stepwell_engine.core.run import Status
from stepwell_engine.errors import NewerFormat, Unavailable
from tests.functions.home import SQL, Home, refused
from tests.service.world import START

RUNS = "/workflows/orders/runs"
NAP = {"key": "nap", "kind": "sleep", "sleep_for": "1h"}


def sql(key: str, **fields: Any) -> dict[str, Any]:
    return {**SQL, "key": key, **fields}


# --- start ------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [None, {}, {"input": {}}, {"test": False}])
def test_a_start_needs_no_body(home: Home, body: object) -> None:
    home.publish()
    answer = home.call("POST", RUNS, body)
    assert answer.status == 201
    assert answer.body == {"id": answer.body["id"], "status": "pending"}
    assert home.run(answer.body["id"])["input"] == {}


@pytest.mark.parametrize("value", [None, 0, "x", [1, 2.5, None], {"a": {"b": "ä😀"}}, True])
def test_any_json_value_is_an_input(home: Home, value: object) -> None:
    home.publish()
    assert home.run(home.start(input=value))["input"] == value


def test_a_key_that_was_used_answers_with_its_run(home: Home) -> None:
    home.publish()
    first = home.call("POST", RUNS, {"input": 1, "idempotency_key": "order-42"})
    again = home.call("POST", RUNS, {"input": 2, "idempotency_key": "order-42"})
    assert (first.status, again.status) == (201, 200)
    assert first.body == again.body
    shown = home.run(first.body["id"])
    assert (shown["input"], shown["idempotency_key"]) == (1, "order-42")


@pytest.mark.parametrize(("length", "status"), [(0, 400), (1, 201), (200, 201), (201, 400)])
def test_a_key_has_1_to_200_characters(home: Home, length: int, status: int) -> None:
    home.publish()
    answer = home.call("POST", RUNS, {"idempotency_key": "ä" * length})
    assert answer.status == status
    if status == 400:
        assert "1 to 200 are allowed" in refused(answer, "invalid_request")


def test_an_input_has_at_most_256_kib_of_compact_json(home: Home) -> None:
    home.publish()
    fits = "x" * (limits.MAX_INPUT - 2)
    assert home.run(home.start(input=fits))["input"] == fits
    answer = home.call("POST", RUNS, {"input": fits + "x"})
    assert answer.status == 413
    assert "262144" in refused(answer, "payload_too_large")
    assert len(home.call("GET", RUNS).body["items"]) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"inputs": 1}, "$.inputs is an unknown field: allowed are input, idempotency_key, test"),
        ({"idempotency_key": 7}, "$.idempotency_key must be text, not 7"),
        ({"test": "true"}, '$.test must be true or false, not "true"'),
    ],
)
def test_a_start_takes_no_other_fields_and_types(home: Home, body: object, message: str) -> None:
    home.publish()
    assert refused(home.call("POST", RUNS, body), "invalid_request") == message


def test_all_faults_of_a_body_are_told(home: Home) -> None:
    home.publish()
    answer = home.call("POST", RUNS, {"x": 1, "test": 1})
    refused(answer, "invalid_request")
    assert [one["where"] for one in answer.body["errors"]] == ["$.test", "$.x"]


# --- detail -----------------------------------------------------------------------------------


def test_a_new_run_shows_every_step_as_pending(home: Home) -> None:
    home.publish("orders", sql("a"), NAP)
    shown = home.run(home.start(test=True))
    assert shown["status"] == "pending"
    assert shown["test"] is True
    assert [(one["key"], one["status"], one["attempt"]) for one in shown["steps"]] == [
        ("a", "pending", 0),
        ("nap", "pending", 0),
    ]
    assert shown["reason"] == "waiting for a worker to go on at step a"
    assert shown["started_at"] is None


def test_a_finished_run_shows_outputs_and_times(home: Home) -> None:
    home.publish("orders", sql("a"), sql("b"), sql("c"))
    home.outcomes = [Succeeded(b'{"n":1}'), Succeeded(b"[2]"), Succeeded()]
    run_id = home.start()
    home.clock.sleep(1_500)
    home.turn(run_id)
    shown = home.run(run_id)
    assert (shown["status"], shown["cursor"], shown["reason"]) == ("succeeded", 3, None)
    assert shown["output"] == [2]
    assert shown["created_at"] == "2023-11-14T22:13:20.000Z"
    assert shown["started_at"] == shown["finished_at"] == "2023-11-14T22:13:21.500Z"
    assert [one.get("output") for one in shown["steps"]] == [{"n": 1}, [2], None]
    assert "output" not in shown["steps"][2]


def test_a_failed_run_shows_only_the_steps_that_it_reached(home: Home) -> None:
    home.publish("orders", sql("a", max_attempts=1), sql("b"))
    home.outcomes = [Failed("no such table", code="unknown_resource", retryable=False)]
    run_id = home.start()
    home.turn(run_id)
    shown = home.run(run_id)
    assert (shown["status"], shown["last_error"]) == ("failed", "no such table")
    assert shown["compensation"] == {"state": "none"}
    (step,) = shown["steps"]
    assert (step["status"], step["error"], step["code"]) == (
        "failed",
        "no such table",
        "unknown_resource",
    )
    assert shown["output"] is None


def test_a_retry_says_when_and_which_attempt(home: Home) -> None:
    home.publish("orders", sql("charge", max_attempts=5))
    home.outcomes = [Failed("busy")]
    run_id = home.start()
    home.turn(run_id)
    shown = home.run(run_id)
    assert (shown["status"], shown["last_error"]) == ("pending", "busy")
    at = "2023-11-14T22:13:22.000Z"
    assert shown["reason"] == f"retrying step charge at {at}, attempt 2 of 5"
    (step,) = shown["steps"]
    assert (step["status"], step["attempt"], step["next_attempt_at"]) == ("retrying", 1, at)


def test_a_sleep_says_until_when(home: Home) -> None:
    home.publish("orders", NAP)
    run_id = home.start()
    home.turn(run_id)
    shown = home.run(run_id)
    assert shown["status"] == "sleeping"
    assert shown["reason"] == "sleeping until 2023-11-14T23:13:20.000Z"
    assert shown["steps"][0]["status"] == "sleeping"


class Watching:
    """Looks at the run while a step of it is in flight."""

    def __init__(self, home: Home, outcome: Outcome) -> None:
        self.home = home
        self.seen: list[Any] = []
        self._outcome = outcome

    def perform(self, act: Act) -> Outcome:
        self.seen.append(self.home.run(act.run_id))
        return self._outcome


def watched(home: Home, run_id: str, outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> Any:
    watching = Watching(home, outcome)
    monkeypatch.setattr(home, "perform", watching.perform)
    home.turn(run_id)
    monkeypatch.undo()
    return watching.seen


def test_a_step_in_flight_is_running(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.publish("orders", sql("a"))
    run_id = home.start()
    (shown,) = watched(home, run_id, Failed("busy"), monkeypatch)
    assert shown["status"] == "running"
    assert shown["reason"] == "running step a, attempt 1 of 3"
    assert (shown["steps"][0]["status"], shown["steps"][0]["attempt"]) == ("running", 1)
    home.clock.sleep(2_000)
    (shown,) = watched(home, run_id, Succeeded(), monkeypatch)
    assert (shown["steps"][0]["status"], shown["steps"][0]["attempt"]) == ("running", 2)
    assert home.run(run_id)["status"] == "succeeded"


def test_a_lost_worker_is_told(home: Home) -> None:
    home.publish()
    run_id = home.start()
    home.runs.claim(run_id, "token", START, START + 60_000)
    home.clock.sleep(60_000)
    shown = home.run(run_id)
    assert shown["status"] == "pending"
    assert shown["reason"].startswith("its worker was lost")


def test_a_large_output_comes_from_its_blob(home: Home) -> None:
    home.publish()
    large = json.dumps("x" * (limits.MAX_OUTPUT - 2)).encode()
    home.outcomes = [Succeeded(large)]
    run_id = home.start()
    home.turn(run_id)
    shown = home.run(run_id)
    assert shown["output"] == shown["steps"][0]["output"] == json.loads(large)


def test_steps_on_pages_are_shown_in_definition_order(home: Home) -> None:
    steps = [sql(f"k{at}") for at in range(limits.MAX_STEPS)]
    home.publish("orders", *steps)
    home.outcomes = [
        Succeeded(json.dumps({"at": at, "pad": "x" * 90}).encode()) for at in range(200)
    ]
    run_id = home.start()
    home.turn(run_id)
    shown = home.run(run_id)
    assert [one["output"]["at"] for one in shown["steps"]] == list(range(200))
    assert shown["output"]["at"] == 199
    assert shown["next_steps_cursor"] is None
    seen: list[str] = []
    query: dict[str, str] = {"limit": "90"}
    while True:
        page = home.call("GET", f"{RUNS}/{run_id}/steps", query=query).body
        seen += [one["key"] for one in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert seen == [one["key"] for one in steps]


def test_a_run_whose_version_cannot_be_read_is_shown_without_steps(home: Home) -> None:
    home.catalog.publish("demo", "orders", b'{"steps":[{"key":"a","kind":"magic"}]}', True, START)
    run_id = home.start()
    home.turn(run_id)
    shown = home.run(run_id)
    assert (shown["status"], shown["steps"]) == ("failed", [])
    assert "cannot be loaded" in shown["last_error"]


@pytest.mark.parametrize("run_id", ["x", "0" * 65, "00000000-0000-7000-8000-000000009999", "%00"])
@pytest.mark.parametrize("suffix", ["", "/steps", "/cancel"])
def test_an_unknown_run_is_not_found(home: Home, run_id: str, suffix: str) -> None:
    home.publish()
    method = "POST" if suffix == "/cancel" else "GET"
    answer = home.call(method, f"{RUNS}/{run_id}{suffix}")
    assert "there is no run" in refused(answer, "not_found")


@pytest.mark.parametrize("suffix", ["", "/steps", "/cancel"])
def test_a_run_of_another_workflow_or_project_is_not_found(home: Home, suffix: str) -> None:
    home.publish()
    home.publish("other")
    home.services.identity.create_project("org", "second")
    run_id = home.start()
    method = "POST" if suffix == "/cancel" else "GET"
    refused(home.call(method, f"/workflows/other/runs/{run_id}{suffix}"), "not_found")
    answer = home.call(method, f"{RUNS}/{run_id}{suffix}", project="/v1/projects/second")
    refused(answer, "not_found")
    assert home.run(run_id)["status"] == "pending"


# --- wait -------------------------------------------------------------------------------------


def test_a_wait_ends_when_its_seconds_are_over(home: Home) -> None:
    home.publish()
    run_id = home.start()
    assert home.run(run_id, wait="25")["status"] == "pending"
    assert home.clock.at == START + 25_000


def test_a_wait_ends_when_the_run_ends(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.publish()
    run_id = home.start()
    pauses: list[int] = []

    def sleep(ms: int) -> None:
        pauses.append(ms)
        home.clock.at += ms
        if len(pauses) == 8:
            home.turn(run_id)

    monkeypatch.setattr(home.clock, "sleep", sleep)
    assert home.run(run_id, wait="20")["status"] == "succeeded"
    assert pauses == [5, 10, 20, 40, 80, 160, 200, 200]


def test_a_wait_for_an_ended_run_answers_at_once(home: Home) -> None:
    home.publish()
    run_id = home.start()
    home.turn(run_id)
    home.run(run_id, wait="25")
    assert home.clock.at == START


@pytest.mark.parametrize("wait", ["26", "-1", "x", "1.5", "", "1,2", "9" * 5000])
def test_a_wait_is_0_to_25_seconds(home: Home, wait: str) -> None:
    home.publish()
    answer = home.call("GET", f"{RUNS}/{home.start()}", query={"wait": wait})
    assert "?wait must be" in refused(answer, "invalid_request")


# --- lists ------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("limit", ["0", "101", "-1", "x", ""])
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


# --- cancel -----------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [None, {}])
def test_a_live_run_is_cancelled(home: Home, body: object) -> None:
    home.publish("orders", sql("a"), NAP, sql("b"))
    run_id = home.start()
    home.turn(run_id)
    answer = home.call("POST", f"{RUNS}/{run_id}/cancel", body)
    assert answer.status == 200
    assert answer.body == {"id": run_id, "status": "cancelled"}
    shown = home.run(run_id)
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
    assert [(one["key"], one["status"]) for one in home.run(run_id)["steps"]] == [
        ("a", "cancelled")
    ]


def test_a_step_in_flight_of_a_cancelled_run_is_running_until_it_is_recorded(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.publish("orders", sql("a"), sql("b"))
    run_id = home.start()

    def perform(act: Act) -> Outcome:
        home.call("POST", f"{RUNS}/{run_id}/cancel")
        shown = home.run(run_id)
        assert (shown["status"], shown["steps"][0]["status"]) == ("cancelled", "running")
        return Succeeded(b"1")

    monkeypatch.setattr(home, "perform", perform)
    home.turn(run_id)
    shown = home.run(run_id)
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
    assert home.run(run_id)["status"] == "pending"


# --- stores that fail -------------------------------------------------------------------------


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
