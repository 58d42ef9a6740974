"""Reading a run, and waiting for it, over the API."""

import json
from random import Random
from typing import Any

import pytest

from stepwell_engine import limits
from stepwell_engine.core.run.attempt import Attempt, Failed, Outcome, Succeeded
from stepwell_engine.core.run.head import Head
from stepwell_engine.errors import NewerFormat
from stepwell_engine.service.runs.run_reader import journal_of
from tests.api.home import NAP, RUNS, Home, refused, sql
from tests.service.world import START

CALLS: dict[str, tuple[str, object]] = {
    "": ("GET", None),
    "/steps": ("GET", None),
    "/cancel": ("POST", None),
    "/signals": ("POST", {"signal": "approved"}),
}


def test_a_new_run_shows_every_step_as_pending(home: Home) -> None:
    home.publish("orders", sql("a"), NAP)
    shown = home.show(home.start(test=True))
    assert shown["status"] == "pending"
    assert shown["test"] is True
    assert [(one["key"], one["status"], one["attempt"]) for one in shown["steps"]] == [
        ("a", "pending", 0),
        ("nap", "pending", 0),
    ]
    assert shown["reason"] == "waiting for a worker to go on at step a, attempt 1 of 3"
    assert shown["started_at"] is None


def test_a_finished_run_shows_outputs_and_times(home: Home) -> None:
    home.publish("orders", sql("a"), sql("b"), sql("c"))
    home.outcomes = [Succeeded(b'{"n":1}'), Succeeded(b"[2]"), Succeeded()]
    run_id = home.start()
    home.clock.sleep(1_500)
    home.turn(run_id)
    shown = home.show(run_id)
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
    shown = home.show(run_id)
    assert (shown["status"], shown["last_error"]) == ("failed", "no such table")
    assert shown["compensation"] == {"state": "none"}
    (step,) = shown["steps"]
    assert (step["status"], step["error"], step["code"]) == (
        "failed",
        "no such table",
        "unknown_resource",
    )
    assert shown["output"] is None


@pytest.mark.parametrize("code", ["timeout", None])
def test_a_live_run_shows_the_code_of_the_error_that_it_shows(home: Home, code: str | None) -> None:
    home.publish("orders", sql("charge"))
    home.outcomes = [Failed("busy", code), Succeeded()]
    run_id = home.start()
    assert (home.show(run_id)["last_error"], home.show(run_id)["code"]) == (None, None)
    home.turn(run_id)
    (listed,) = home.call("GET", RUNS).body["items"]
    for shown in (home.show(run_id), listed):
        assert (shown["status"], shown["last_error"], shown["code"]) == ("pending", "busy", code)
    home.clock.sleep(2_000)
    home.turn(run_id)
    assert (home.show(run_id)["last_error"], home.show(run_id)["code"]) == (None, None)


def test_a_failed_run_shows_the_code_of_what_it_failed_of(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_RUN_ATTEMPTS", 1)
    fan = {"key": "fan", "kind": "fanout", "children": [sql("child", max_attempts=1)]}
    cases: list[tuple[str, list[Any], Outcome]] = [
        ("unknown_resource", [sql("a")], Failed("none", "unknown_resource", retryable=False)),
        ("child_failed", [fan, {"key": "joined", "kind": "join"}], Failed("no")),
        ("step_ceiling", [sql("a"), sql("b")], Succeeded()),
    ]
    for code, steps, outcome in cases:
        home.publish("orders", *steps)
        home.outcomes = [outcome]
        run_id = home.start()
        home.turn(run_id)
        (listed,) = home.call("GET", RUNS, query={"limit": "1"}).body["items"]
        for shown in (home.show(run_id), listed):
            assert (shown["id"], shown["status"], shown["code"]) == (run_id, "failed", code)


def test_a_run_whose_compensation_stopped_shows_the_code_of_its_step(home: Home) -> None:
    compensation = {"kind": "sql", "target": "select 1", "max_attempts": 1}
    home.publish("orders", sql("a", compensate=compensation), sql("b"))
    home.outcomes = [
        Succeeded(),
        Failed("no table", "unknown_resource", retryable=False),
        Failed("locked", "timeout"),
    ]
    run_id = home.start()
    home.turn(run_id)
    shown = home.show(run_id)
    assert shown["last_error"] == 'compensation of step "a" failed, rollback stopped: locked'
    assert (shown["compensation"]["state"], shown["code"]) == ("failed", "unknown_resource")


def test_a_kind_that_takes_no_attempts_has_one(home: Home) -> None:
    home.publish("fulfilment")
    fan = {"key": "fan", "kind": "fanout", "children": [sql("child", max_attempts=7)]}
    home.publish(
        "orders",
        NAP,
        {"key": "approve", "kind": "wait_for_signal", "signal": "approved"},
        fan,
        {"key": "joined", "kind": "join"},
        {"key": "fulfil", "kind": "subworkflow", "target": "fulfilment"},
        sql("a"),
    )
    shown = home.show(home.start())["steps"]
    assert {one["key"]: one["max_attempts"] for one in shown} == {
        **dict.fromkeys(["nap", "approve", "fan", "joined"], 1),
        **{"child": 7, "fulfil": 3, "a": 3},
    }


def parent_and_child(home: Home) -> tuple[str, Any]:
    """The ids of a run and of the child run for which it waits."""
    home.publish("fulfilment", NAP)
    home.publish("orders", {"key": "fulfil", "kind": "subworkflow", "target": "fulfilment"})
    run_id = home.start()
    home.turn(run_id)
    return run_id, home.show(run_id)["steps"][0]["output"]


def test_a_child_leads_to_its_parent(home: Home) -> None:
    parent, child = parent_and_child(home)
    shown = home.show(child, "fulfilment")["parent"]
    assert shown == {"run_id": parent, "workflow": "orders"}
    assert home.show(shown["run_id"], shown["workflow"])["parent"] is None
    (listed,) = home.call("GET", "/workflows/fulfilment/runs").body["items"]
    assert listed["parent"] == {"run_id": parent}


def test_a_parent_that_is_gone_is_of_no_workflow(home: Home) -> None:
    parent, child = parent_and_child(home)
    del home.runs._heads[parent]
    assert home.show(child, "fulfilment")["parent"] == {"run_id": parent, "workflow": None}


def test_a_parent_of_a_newer_format_does_not_hide_its_child(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, child = parent_and_child(home)
    get = home.runs.get

    def upgraded(run_id: str) -> Head | None:
        if run_id == parent:
            raise NewerFormat("a run", 2, 1)
        return get(run_id)

    monkeypatch.setattr(home.runs, "get", upgraded)
    assert home.show(child, "fulfilment")["parent"] == {"run_id": parent, "workflow": None}


def test_a_retry_says_when_and_which_attempt(home: Home) -> None:
    home.publish("orders", sql("charge", max_attempts=5))
    home.outcomes = [Failed("busy")]
    run_id = home.start()
    home.turn(run_id)
    shown = home.show(run_id)
    assert (shown["status"], shown["last_error"]) == ("pending", "busy")
    at = "2023-11-14T22:13:22.000Z"
    assert shown["reason"] == f"retrying step charge at {at}, attempt 2 of 5"
    (step,) = shown["steps"]
    assert (step["status"], step["attempt"], step["next_attempt_at"]) == ("retrying", 1, at)


def test_a_sleep_says_until_when(home: Home) -> None:
    home.publish("orders", NAP)
    run_id = home.start()
    home.turn(run_id)
    shown = home.show(run_id)
    assert shown["status"] == "sleeping"
    assert shown["reason"] == "sleeping until 2023-11-14T23:13:20.000Z"
    assert shown["steps"][0]["status"] == "sleeping"


class Watching:
    """Looks at the run while a step of it is in flight."""

    def __init__(self, home: Home, outcome: Outcome) -> None:
        self.home = home
        self.seen: list[Any] = []
        self._outcome = outcome

    def run(self, attempt: Attempt) -> Outcome:
        self.seen.append(self.home.show(attempt.run_id))
        return self._outcome


def watched(home: Home, run_id: str, outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> Any:
    watching = Watching(home, outcome)
    monkeypatch.setattr(home, "run", watching.run)
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
    assert home.show(run_id)["status"] == "succeeded"


def test_a_lost_worker_is_reported(home: Home) -> None:
    home.publish()
    run_id = home.start()
    home.runs.claim(run_id, "token", START, START + 60_000)
    home.clock.sleep(60_000)
    shown = home.show(run_id)
    assert shown["status"] == "pending"
    assert shown["reason"].startswith("its worker was lost")


def test_a_large_output_comes_from_its_blob(home: Home) -> None:
    home.publish()
    large = json.dumps("x" * (limits.MAX_OUTPUT - 2)).encode()
    home.outcomes = [Succeeded(large)]
    run_id = home.start()
    home.turn(run_id)
    shown = home.show(run_id)
    assert shown["output"] == shown["steps"][0]["output"] == json.loads(large)


def test_large_outputs_make_the_pages_of_steps_shorter(home: Home) -> None:
    home.publish("orders", *(sql(f"k{at}") for at in range(20)))
    large = json.dumps("x" * (limits.MAX_OUTPUT - 2)).encode()
    home.outcomes = [Succeeded(large)] * 20
    run_id = home.start()
    home.turn(run_id)
    shown = home.show(run_id)
    assert len(shown["steps"]) == limits.MAX_PAGE_BYTES // limits.MAX_OUTPUT
    query = {"cursor": shown["next_steps_cursor"]}
    page = home.call("GET", f"{RUNS}/{run_id}/steps", query=query).body
    assert page["items"][0]["key"] == "k8"
    assert page["items"][0]["output"] == json.loads(large)


def test_steps_on_pages_are_shown_in_definition_order(home: Home) -> None:
    steps = [sql(f"k{at}") for at in range(limits.MAX_STEPS)]
    home.publish("orders", *steps)
    dice = Random(0)
    home.outcomes = [
        Succeeded(json.dumps({"at": at, "pad": dice.randbytes(45).hex()}).encode())
        for at in range(200)
    ]
    run_id = home.start()
    home.turn(run_id)
    head = home.runs.get(run_id)
    assert head is not None
    assert max(page.level for page in journal_of(head).pages) == 1  # an index page
    shown = home.show(run_id)
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
    home.versions.publish("demo", "orders", b'{"steps":[{"key":"a","kind":"magic"}]}', True, START)
    run_id = home.start()
    home.turn(run_id)
    shown = home.show(run_id)
    assert (shown["status"], shown["steps"]) == ("failed", [])
    assert "cannot be loaded" in shown["last_error"]


@pytest.mark.parametrize("run_id", ["x", "0" * 65, "00000000-0000-7000-8000-000000009999", "%00"])
@pytest.mark.parametrize("suffix", ["", "/steps", "/cancel", "/signals"])
def test_an_unknown_run_is_not_found(home: Home, run_id: str, suffix: str) -> None:
    home.publish()
    method, body = CALLS[suffix]
    answer = home.call(method, f"{RUNS}/{run_id}{suffix}", body)
    assert "there is no run" in refused(answer, "not_found")


@pytest.mark.parametrize("suffix", ["", "/steps", "/cancel", "/signals"])
def test_a_run_of_another_workflow_or_project_is_not_found(home: Home, suffix: str) -> None:
    home.publish()
    home.publish("other")
    home.services.identity.create_project("org", "second")
    run_id = home.start()
    method, body = CALLS[suffix]
    refused(home.call(method, f"/workflows/other/runs/{run_id}{suffix}", body), "not_found")
    answer = home.call(method, f"{RUNS}/{run_id}{suffix}", body, project="/v1/projects/second")
    refused(answer, "not_found")
    assert home.show(run_id)["status"] == "pending"


def test_a_wait_ends_when_its_seconds_are_over(home: Home) -> None:
    home.publish()
    run_id = home.start()
    assert home.show(run_id, wait="25")["status"] == "pending"
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
    assert home.show(run_id, wait="20")["status"] == "succeeded"
    assert pauses == [5, 10, 20, 40, 80, 160, 200, 200]


def test_a_wait_for_an_ended_run_answers_at_once(home: Home) -> None:
    home.publish()
    run_id = home.start()
    home.turn(run_id)
    home.show(run_id, wait="25")
    assert home.clock.at == START


@pytest.mark.parametrize("wait", ["26", "-1", "x", "1.5", "", "1,2", "9" * 5000])
def test_a_wait_is_0_to_25_seconds(home: Home, wait: str) -> None:
    home.publish()
    answer = home.call("GET", f"{RUNS}/{home.start()}", query={"wait": wait})
    assert "?wait must be" in refused(answer, "invalid_request")
