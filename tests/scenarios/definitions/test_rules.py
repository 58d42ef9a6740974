"""A workflow that could not be executed is refused when it is published, its steps named."""

from typing import Any

import pytest

from tests.scenarios.homes import Home, JsonObject

HOOK: JsonObject = {"key": "hook", "kind": "webhook", "target": "https://a.example/x"}
NAP: JsonObject = {"key": "nap", "kind": "sleep", "sleep_for": "1s"}
JOIN: JsonObject = {"key": "join", "kind": "join"}
COMPENSATION: JsonObject = {"kind": "enqueue", "target": "emails"}


def fanout(*children: JsonObject, **fields: Any) -> JsonObject:
    return {"key": "fan", "kind": "fanout", "children": list(children) or [HOOK], **fields}


def hook(**fields: Any) -> JsonObject:
    return {**HOOK, **fields}


def of_kind(kind: str, **fields: Any) -> JsonObject:
    return {"key": "one", "kind": kind, **fields}


# What is wrong: the steps, and the step that the first violation names.
KEYS = {
    "upper case": ([hook(key="Hook")], "steps[0]"),
    "65 characters": ([hook(key="k" * 65)], "steps[0]"),
    "a colon": ([hook(key="compensate:x")], "steps[0]"),
    "none": ([{"kind": "join"}], "steps[0]"),
    "twice": ([HOOK, HOOK], "hook"),
    "of a child": ([hook(), fanout(HOOK), JOIN], "hook"),
}
SIZES = {
    "no step": ([], None),
    "201 steps": ([hook(key=f"k{n}") for n in range(201)], None),
    "201 children": ([fanout(*(hook(key=f"k{n}") for n in range(201))), JOIN], "fan"),
    "a long target": ([hook(target="https://a.example/" + "x" * 8192)], "hook"),
}
PAIRS = {
    "a fan-out at the end": ([fanout()], "fan"),
    "a step between": ([fanout(), NAP, JOIN], "fan"),
    "a join alone": ([NAP, JOIN], "join"),
    "a join with children": ([fanout(), {**JOIN, "children": [NAP]}], "join"),
}
NESTING = {
    "a fan-out": ([fanout(fanout()), JOIN], "fan"),
    "a sleep": ([fanout(NAP), JOIN], "nap"),
    "a wait": ([fanout(of_kind("wait_for_signal", signal="s")), JOIN], "one"),
    "a sub-workflow": ([fanout(of_kind("subworkflow", target="b")), JOIN], "one"),
    "children of a webhook": ([hook(children=[NAP])], "hook"),
}
TARGETS = {
    "queue": ([of_kind("enqueue", target="Emails")], "one"),
    "function": ([of_kind("function", target="-f")], "one"),
    "workflow": ([of_kind("subworkflow", target="a.b")], "one"),
    "itself": ([of_kind("subworkflow", target="order")], "one"),
    "ftp": ([of_kind("webhook", target="ftp://a.example")], "one"),
    "no host": ([of_kind("webhook", target="https:///x")], "one"),
    "empty sql": ([of_kind("sql", target=" ")], "one"),
    "no sleep": ([of_kind("sleep")], "one"),
    "31 days": ([of_kind("sleep", sleep_for="31d")], "one"),
    "no time": ([of_kind("sleep", sleep_for="0s")], "one"),
    "signal": ([of_kind("wait_for_signal", signal="Go!")], "one"),
    "a wait of 31 days": (
        [of_kind("wait_for_signal", signal="go", timeout_seconds=31 * 86_400)],
        "one",
    ),
    "an unknown kind": ([of_kind("loop")], "one"),
}
COMPENSATIONS = {
    "of a fan-out": ([fanout(compensate=COMPENSATION), JOIN], "fan"),
    "of a join": ([fanout(), {**JOIN, "compensate": COMPENSATION}], "join"),
    "of a sleep": ([{**NAP, "compensate": COMPENSATION}], "nap"),
    "of a wait": ([of_kind("wait_for_signal", signal="s", compensate=COMPENSATION)], "one"),
    "a sub-workflow": (
        [hook(compensate={"kind": "subworkflow", "target": "b"})],
        "compensate:hook",
    ),
    "with a key": ([hook(compensate={**COMPENSATION, "key": "k"})], "compensate:hook"),
    "with children": ([hook(compensate={**COMPENSATION, "children": [NAP]})], "compensate:hook"),
    "nested": ([hook(compensate={**COMPENSATION, "compensate": COMPENSATION})], "compensate:hook"),
    "with a sleep": ([hook(compensate={**COMPENSATION, "sleep_for": "1s"})], "compensate:hook"),
    "with a signal": ([hook(compensate={**COMPENSATION, "signal": "s"})], "compensate:hook"),
}


def check_refused(home: Home, steps: list[JsonObject], step: str | None) -> None:
    answer = home.request("PUT", "/workflows/order", {"steps": steps})
    assert (answer.status, answer.body["code"]) == (400, "invalid_definition")
    assert step in [violation["step"] for violation in answer.body["violations"]]
    assert home.request("GET", "/workflows/order").status == 404


@pytest.mark.parametrize(("steps", "step"), KEYS.values(), ids=list(KEYS))
def test_keys_have_a_form_and_are_unique(home: Home, steps: Any, step: str | None) -> None:
    check_refused(home, steps, step)


@pytest.mark.parametrize(("steps", "step"), SIZES.values(), ids=list(SIZES))
def test_sizes_are_bounded(home: Home, steps: Any, step: str | None) -> None:
    check_refused(home, steps, step)


@pytest.mark.parametrize(("steps", "step"), PAIRS.values(), ids=list(PAIRS))
def test_a_fanout_and_its_join_are_a_pair(home: Home, steps: Any, step: str | None) -> None:
    check_refused(home, steps, step)


@pytest.mark.parametrize(("steps", "step"), NESTING.values(), ids=list(NESTING))
def test_children_nest_one_level_and_have_side_effects(
    home: Home, steps: Any, step: str | None
) -> None:
    check_refused(home, steps, step)


@pytest.mark.parametrize(("steps", "step"), TARGETS.values(), ids=list(TARGETS))
def test_every_kind_has_its_own_rules(home: Home, steps: Any, step: str | None) -> None:
    check_refused(home, steps, step)


@pytest.mark.parametrize(("steps", "step"), COMPENSATIONS.values(), ids=list(COMPENSATIONS))
def test_compensations_stand_only_where_there_is_something_to_compensate(
    home: Home, steps: Any, step: str | None
) -> None:
    check_refused(home, steps, step)


def test_the_largest_definition_is_taken(home: Home) -> None:
    steps = [hook(key=f"k{n}", target="https://a.example/" + "x" * 1000) for n in range(198)]
    children = [of_kind("enqueue", target="emails") | {"key": f"c{n}"} for n in range(200)]
    answer = home.request("PUT", "/workflows/order", {"steps": [*steps, fanout(*children), JOIN]})
    assert answer.status == 201, answer.body


@pytest.mark.parametrize("name", ["Order", "-a", "a" * 65, "a.b", "app"])
def test_the_name_has_a_form(home: Home, name: str) -> None:
    answer = home.request("PUT", f"/workflows/{name}", {"steps": [NAP]})
    assert (answer.status, answer.body["code"]) == (400, "invalid_request")


def test_an_enabled_first_version_is_what_a_put_makes(home: Home) -> None:
    answer = home.request("PUT", "/workflows/order", {"steps": [NAP]})
    assert (answer.status, answer.body) == (201, {"name": "order", "version": 1, "enabled": True})
    shown = home.ok("GET", "/workflows/order")
    assert shown["steps"] == [NAP]
    (item,) = home.ok("GET", "/workflows")["items"]
    assert (item["name"], item["version"], item["step_count"]) == ("order", 1, 1)


def test_a_workflow_cannot_be_deleted(home: Home) -> None:
    home.ok("PUT", "/workflows/order", {"steps": [NAP]})
    answer = home.request("DELETE", "/workflows/order")
    assert (answer.status, answer.body["code"]) == (405, "method_not_allowed")
