"""What the comparison with the model has found, each as a story of its own."""

from typing import Any

import pytest

from tests.model.stage import Stage, small
from tests.model.story import Bounds, Event, History, Path, Scenario, Try, Workflow

LONG = 10**12  # ms
FINAL = Try(error="no", final=True)


def action(key: str, attempts: int = 1, compensated: bool = False) -> dict[str, Any]:
    body = {"kind": "function", "target": "charge", "max_attempts": attempts}
    return {"key": key, **body} | ({"compensate": body} if compensated else {})


def call(key: str, target: str, attempts: int = 1) -> dict[str, Any]:
    return {"key": key, "kind": "subworkflow", "target": target, "max_attempts": attempts}


def fan(*children: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": "fan", "kind": "fanout", "children": [*children]}, {"key": "j", "kind": "join"}]


def play(
    workflows: dict[str, list[dict[str, Any]]],
    tries: dict[str, Try],
    *events: Event,
    bounds: Bounds = Bounds(),  # noqa: B008  frozen
) -> dict[Path, History]:
    """The engine's histories; `tries` by step key, alone or with `#` and the attempt."""

    def script(workflow: str, start: int, key: str, attempt: int) -> Try:
        return tries.get(f"{key}#{attempt}", tries.get(key, Try(output="1")))

    documents = {name: Workflow({"steps": steps}) for name, steps in workflows.items()}
    scenario = Scenario(documents, "w0", script, events, bounds)
    with small(bounds):
        return Stage(scenario, LONG).play()


def test_a_child_that_backs_off_is_not_tried_again_once_the_run_is_cancelled() -> None:
    tries = {"slow": Try(6_000), "busy": Try(100, error="busy")}
    steps = fan(action("slow"), action("busy", 2))
    run = play({"w0": steps}, tries, Event(500, ()))[()]
    assert run.attempts == [(0, "slow", 1), (0, "busy", 1)]
    assert {row.key: row.status for row in run.rows} == {
        "fan": "succeeded",
        "slow": "succeeded",
        "busy": "cancelled",
        "j": "cancelled",
    }


def test_a_message_that_comes_while_a_child_backs_off_disturbs_nothing() -> None:
    tries = {"slow": Try(6_000, "1"), "busy#1": Try(error="busy")}
    steps = fan(action("slow"), action("busy", 2))
    run = play({"w0": steps}, tries, Event(500, (), "go"))[()]
    assert (run.status, run.ended) == ("succeeded", 6_000)
    assert run.attempts == [(0, "slow", 1), (0, "busy", 1), (2_000, "busy", 2)]


def test_a_child_that_backed_off_before_the_cancel_is_cancelled_though_another_had_failed() -> None:
    tries = {"slow": Try(6_000), "busy": Try(error="busy"), "bad": FINAL}
    steps = fan(action("slow"), action("busy", 2), action("bad"))
    run = play({"w0": steps}, tries, Event(500, ()))[()]
    rows = {row.key: row for row in run.rows}
    assert (rows["busy"].status, rows["busy"].error) == ("cancelled", "busy")
    assert (rows["bad"].status, rows["slow"].status) == ("failed", "succeeded")


@pytest.mark.parametrize("at", [500, 2_500])
def test_a_cancelled_run_has_no_last_error_wherever_its_step_stood(at: int) -> None:
    tries = {"a": Try(1_000, error="busy")}
    run = play({"w0": [action("a", 2)]}, tries, Event(at, ()))[()]
    assert (run.status, run.last_error) == ("cancelled", None)


def test_a_step_that_could_start_no_child_names_none() -> None:
    run = play({"w0": [call("c", "nowhere")]}, {})[()]
    assert (run.rows[0].code, run.rows[0].child) == ("unknown_resource", None)


@pytest.mark.parametrize(("attempts", "status"), [(1, "failed"), (2, "succeeded")])
def test_a_child_run_counts_as_an_attempt_against_the_ceiling(attempts: int, status: str) -> None:
    workflows = {"w0": [action("a"), call("c", "w1")], "w1": [action("b")]}
    runs = play(workflows, {}, bounds=Bounds(attempts=attempts))
    assert runs[()].status == status
    assert len(runs) == attempts


def test_a_child_whose_compensation_stuck_after_it_went_too_deep_is_not_started_again() -> None:
    workflows = {
        "w0": [call("c", "w1", 3)],
        "w1": [action("b", compensated=True), call("d", "w2")],
        "w2": [action("e")],
    }
    runs = play(workflows, {"compensate:b": FINAL}, bounds=Bounds(depth=1))
    assert [path for path in runs if path] == [(("c", 1),)]
    assert runs[()].rows[0].code == "depth_exceeded"
    child = runs[("c", 1),]
    assert child.last_error == 'compensation of step "b" failed, rollback stopped: no'


def test_a_compensation_that_meets_the_ceiling_stops_where_it_is() -> None:
    steps = [action("a", compensated=True), action("b", compensated=True), action("c")]
    run = play({"w0": steps}, {"c": FINAL}, bounds=Bounds(attempts=4))[()]
    assert [key for _, key, _ in run.attempts] == ["a", "b", "c", "compensate:b"]
    assert (run.status, run.compensation, run.compensating) == ("failed", "failed", "a")
    assert (run.last_error or "").startswith("rollback stopped: this run has executed 4 attempts")
