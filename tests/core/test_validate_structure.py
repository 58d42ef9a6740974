"""The shape of a definition: fields, keys, fan-outs, compensations; every violation is named."""

import copy
import itertools
from typing import Any

import pytest

from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.declared.kinds import FIELDS
from stepwell_engine.core.declared.validate import Violation, check
from stepwell_engine.limits import MAX_VIOLATIONS

URL = "https://example.com/hook"
VALUES: dict[str, Any] = {
    "target": "other",
    "payload": {"a": 1},
    "secret": "s",
    "max_attempts": 2,
    "timeout_seconds": 5,
    "sleep_for": "1m",
    "signal": "go",
    "children": [{"key": "c", "kind": "enqueue", "target": "mails"}],
    "compensate": {"kind": "enqueue", "target": "mails"},
}
# Written out here again, so that a slip in the engine's table shows.
USES: dict[str, set[str]] = {
    "enqueue": {"target", "payload", "max_attempts", "timeout_seconds", "compensate"},
    "sql": {"target", "max_attempts", "timeout_seconds", "compensate"},
    "webhook": {"target", "payload", "secret", "max_attempts", "timeout_seconds", "compensate"},
    "function": {"target", "payload", "max_attempts", "timeout_seconds", "compensate"},
    "sleep": {"sleep_for"},
    "wait_for_signal": {"signal", "timeout_seconds"},
    "fanout": {"children"},
    "join": set(),
    "subworkflow": {"target", "payload", "max_attempts", "timeout_seconds", "compensate"},
}
NEEDS = {
    "enqueue": "target", "sql": "target", "webhook": "target", "function": "target",
    "sleep": "sleep_for", "wait_for_signal": "signal", "fanout": "children",
    "subworkflow": "target",
}  # fmt: skip
ACTIONS = ("enqueue", "sql", "webhook", "function")
OTHERS = tuple(kind for kind in USES if kind not in ACTIONS)


def step(kind: str, key: str = "a", **fields: Any) -> dict[str, Any]:
    """A step with every field that its kind uses."""
    full = {name: copy.deepcopy(VALUES[name]) for name in VALUES if name in USES[kind]}
    if kind == "webhook":
        full["target"] = URL
    return {"key": key, "kind": kind, **full, **fields}


def queue(key: Any, **fields: Any) -> dict[str, Any]:
    return {"key": key, "kind": "enqueue", "target": "mails", **fields}


def paired(one: dict[str, Any]) -> list[dict[str, Any]]:
    """The step with the neighbour that a pair needs."""
    if one.get("kind") == "fanout":
        return [one, {"key": "paired", "kind": "join"}]
    if one.get("kind") == "join":
        return [step("fanout", "paired"), one]
    return [one]


def found(*steps: Any) -> list[tuple[str | None, str]]:
    return [(v.step, v.message) for v in check({"steps": list(steps)}, "flow")]


def only(*steps: Any) -> tuple[str | None, str]:
    violations = found(*steps)
    assert len(violations) == 1, violations
    return violations[0]


@pytest.mark.parametrize("kind", USES)
def test_a_step_may_have_every_field_that_its_kind_uses(kind: str) -> None:
    assert found(*paired(step(kind))) == []


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in USES for name in VALUES if name not in USES[kind]],
)
def test_refuses_a_field_that_the_kind_does_not_use(kind: str, name: str) -> None:
    where, message = only(*paired(step(kind, **{name: VALUES[name]})))
    assert where == "a"
    assert kind in message
    assert name in message


@pytest.mark.parametrize(("kind", "name"), NEEDS.items())
def test_refuses_a_step_without_the_field_that_its_kind_needs(kind: str, name: str) -> None:
    bare = step(kind)
    del bare[name]
    where, message = only(*paired(bare))
    assert (where, message.split(":")[0]) == ("a", f"{kind} needs {name}")


def test_the_tables_cover_every_kind_and_field() -> None:
    assert set(USES) == set(Kind)
    assert {"key", "kind", *VALUES} == set(FIELDS)


@pytest.mark.parametrize("name", ["retries", "Key", "", "timeout", "key ", "\ud800", "__proto__"])
def test_refuses_unknown_fields_of_steps(name: str) -> None:
    where, message = only(queue("a", **{name: 1}))
    assert where == "a"
    assert message.startswith("unknown field")
    assert "max_attempts" in message


def test_tells_that_secret_set_is_only_shown() -> None:
    where, message = only(step("webhook", secret_set=True))
    assert where == "a"
    assert "send the secret itself" in message


@pytest.mark.parametrize("key", ["a", "0", "a" * 64, "a-b_c"])
def test_accepts_keys(key: str) -> None:
    assert found(queue(key)) == []


@pytest.mark.parametrize(
    "key",
    ["", "a" * 65, "A", "-a", "_a", "a:b", "compensate:a", "a.b", "a b", "a\n", "é", "\ud800",
     None, 1, True, [], {}],
)  # fmt: skip
def test_refuses_keys_that_do_not_match_and_names_the_step_by_its_path(key: object) -> None:
    where, message = only(queue("ok"), queue(key))
    assert where == "steps[1]"
    assert message.startswith("key must be 1 to 64 lower-case letters")
    assert "^[a-z0-9][a-z0-9_-]{0,63}$" in message


def test_names_children_and_compensations_without_a_valid_key_by_their_paths() -> None:
    child = {"kind": "enqueue", "target": "mails", "compensate": {"kind": "sleep"}}
    bad = {"kind": "enqueue", "target": "mails", "compensate": None}
    violations = found(
        step("fanout", children=[queue("ok"), child]), {"key": "j", "kind": "join"}, bad
    )
    assert [where for where, _ in violations] == [
        "steps[0].children[1]",
        "steps[0].children[1].compensate",
        "steps[2]",
        "steps[2].compensate",
    ]
    assert violations[0][1].startswith("key is missing: 1 to 64")


def test_refuses_a_key_used_twice_anywhere() -> None:
    fan = step("fanout", "fan", children=[queue("a"), queue("b"), queue("b")])
    violations = found(queue("a"), fan, {"key": "b", "kind": "join"}, queue("c"), queue("c"))
    assert [(where, message.split(":")[0]) for where, message in violations] == [
        ("a", "key of steps[1].children[0] is the key of steps[0] too"),
        ("b", "key of steps[1].children[2] is the key of steps[1].children[1] too"),
        ("b", "key of steps[2] is the key of steps[1].children[1] too"),
        ("c", "key of steps[4] is the key of steps[3] too"),
    ]


@pytest.mark.parametrize("kind", [None, 1, True, "", "Sleep", "sleep ", "http", [], {}, ["sleep"]])
def test_refuses_unknown_kinds_and_lists_the_known(kind: object) -> None:
    where, message = only({"key": "a", "kind": kind})
    assert where == "a"
    assert "enqueue, sql, webhook, function, sleep, wait_for_signal, fanout, join, sub" in message


def test_refuses_a_step_without_kind() -> None:
    where, message = only({"key": "a"})
    assert (where, message.split(":")[0]) == ("a", "kind is missing")


def test_checks_the_fields_of_a_step_whose_kind_is_unknown() -> None:
    bad = {"key": "a", "kind": "fan_out", "max_attempts": 0, "timeout_seconds": 0, "target": ""}
    violations = found({**bad, "children": [queue("B")], "compensate": {"kind": "join"}})
    assert [where for where, _ in violations] == [
        "a", "a", "a", "a", "compensate:a", "steps[0].children[0]"
    ]  # fmt: skip


@pytest.mark.parametrize("entry", [None, 1, True, "sleep", [], [[]], 1.5])
def test_refuses_steps_that_are_no_objects(entry: object) -> None:
    where, message = only(queue("a"), entry)
    assert where == "steps[1]"
    assert message.startswith("a step must be an object, not ")


def test_a_definition_has_1_to_200_steps() -> None:
    steps = [queue(f"s{at}") for at in range(201)]
    assert found(*steps[:1]) == found(*steps[:200]) == []
    assert only(*steps) == (None, "steps must be a list of 1 to 200 steps, not of 201")
    assert only() == (None, "steps must be a list of 1 to 200 steps, not of 0")


def test_a_fanout_has_1_to_200_children() -> None:
    children = [queue(f"c{at}") for at in range(201)]
    for good in (children[:1], children[:200]):
        assert found(*paired(step("fanout", children=good))) == []
    for bad, count in ((children, 201), ([], 0)):
        assert only(*paired(step("fanout", children=bad))) == (
            "a",
            f"children must be a list of 1 to 200 steps, not of {count}",
        )


@pytest.mark.parametrize("steps", [None, {}, "x", 1, True])
def test_refuses_steps_and_children_that_are_no_lists(steps: object) -> None:
    violations = check({"steps": steps}, "flow")
    assert [violation.step for violation in violations] == [None]
    assert violations[0].message.startswith("steps must be a list of 1 to 200 steps, not ")
    where, message = only(*paired(step("fanout", children=steps)))
    assert where == "a"
    assert message.startswith("children must be a list of 1 to 200 steps, not ")


@pytest.mark.parametrize("document", [None, [], "x", 1, True, float("nan"), [{"steps": []}]])
def test_refuses_documents_that_are_no_objects(document: object) -> None:
    violations = check(document, "flow")
    assert [violation.step for violation in violations] == [None]
    assert 'must be an object with "steps"' in violations[0].message


def test_refuses_a_document_without_steps_with_unknown_fields_or_an_odd_enabled() -> None:
    good = [queue("a")]
    assert check({"steps": good, "enabled": False}, "flow") == []
    violations = check({"step": good, "name": "x", "enabled": None}, "flow")
    assert [violation.step for violation in violations] == [None] * 4
    starts = ('unknown field "step"', 'unknown field "name"', "enabled must", "steps must be")
    for violation, start in zip(violations, starts, strict=True):
        assert violation.message.startswith(start)
    odd: tuple[object, ...] = (0, 1, "true", [], {})
    for enabled in odd:
        assert len(check({"steps": good, "enabled": enabled}, "flow")) == 1


def fan(key: str = "f") -> dict[str, Any]:
    return step("fanout", key, children=[queue(f"{key}-child")])


def join(key: str = "j") -> dict[str, Any]:
    return {"key": key, "kind": "join"}


@pytest.mark.parametrize(
    ("steps", "wrong"),
    [
        ([fan(), join()], []),
        ([fan("f"), join("j"), fan("g"), join("k")], []),
        ([fan()], ["f"]),
        ([join()], ["j"]),
        ([join(), fan()], ["j", "f"]),
        ([fan(), queue("q"), join()], ["f", "j"]),
        ([fan("f"), fan("g"), join()], ["f"]),
        ([fan(), join("j"), join("k")], ["k"]),
    ],
)
def test_fanout_and_join_are_adjacent_pairs(steps: list[Any], wrong: list[str]) -> None:
    violations = found(*steps)
    assert [where for where, _ in violations] == wrong
    assert all("fanout" in message and "join" in message for _, message in violations)


@pytest.mark.parametrize("kind", OTHERS)
def test_a_child_must_be_an_action(kind: str) -> None:
    child = {"key": "c", "kind": kind}
    where, message = only(*paired(step("fanout", children=[child])))
    assert where == "c"
    assert "fan-out child must be one of enqueue, sql, webhook, function, not" in message


@pytest.mark.parametrize("kind", ACTIONS)
def test_a_child_may_have_every_field_of_its_kind(kind: str) -> None:
    assert found(*paired(step("fanout", children=[step(kind, "c")]))) == []


@pytest.mark.parametrize("kind", ACTIONS)
def test_children_nest_one_level_only(kind: str) -> None:
    child = step(kind, "c", children=[queue("deep")])
    assert only(*paired(step("fanout", children=[child]))) == (
        "c",
        "a fan-out child may not have children: they nest one level only",
    )


def test_a_fanout_may_not_stand_in_a_fanout() -> None:
    violations = found(*paired(step("fanout", children=[step("fanout", "c")])))
    assert [where for where, _ in violations] == ["c", "c"]


def test_a_subworkflow_may_not_start_its_own_definition() -> None:
    where, message = only(step("subworkflow", target="flow"))
    assert where == "a"
    assert "another workflow" in message
    assert found(step("function", target="flow")) == []


@pytest.mark.parametrize("owner", [*ACTIONS, "subworkflow"])
@pytest.mark.parametrize("kind", ACTIONS)
def test_actions_and_subworkflows_may_have_any_action_as_compensation(
    owner: str, kind: str
) -> None:
    compensation = step(kind)
    del compensation["key"], compensation["compensate"]
    assert found(step(owner, compensate=compensation)) == []


@pytest.mark.parametrize("owner", ["fanout", "join", "sleep", "wait_for_signal"])
def test_refuses_a_compensation_where_there_is_nothing_to_compensate(owner: str) -> None:
    assert only(*paired(step(owner, compensate={"bad": 1}))) == (
        "a",
        f"{owner} may not have compensate: it has nothing to undo",
    )


@pytest.mark.parametrize("kind", OTHERS)
def test_a_compensation_must_be_an_action(kind: str) -> None:
    where, message = only(queue("a", compensate={"kind": kind}))
    assert where == "compensate:a"
    assert "compensation must be one of enqueue, sql, webhook, function, not" in message


@pytest.mark.parametrize("name", ["key", "children", "compensate", "sleep_for", "signal"])
def test_a_compensation_may_not_have_fields_of_a_step_of_its_own(name: str) -> None:
    compensation = {"kind": "enqueue", "target": "mails", name: VALUES.get(name, "k")}
    assert only(queue("a", compensate=compensation)) == (
        "compensate:a",
        f"a compensation may not have {name}: remove it",
    )


@pytest.mark.parametrize("compensation", [None, 1, True, "refund", []])
def test_a_compensation_must_be_an_object(compensation: object) -> None:
    where, message = only(queue("a", compensate=compensation))
    assert where == "compensate:a"
    assert message.startswith("a compensation must be an object, not ")


def test_a_compensation_is_held_to_the_rules_of_its_kind() -> None:
    compensation = {"kind": "sql", "target": "", "payload": 1, "timeout_seconds": 601, "extra": 1}
    violations = found(*paired(step("fanout", children=[queue("c", compensate=compensation)])))
    assert [where for where, _ in violations] == ["compensate:c"] * 4


def test_tells_every_violation_of_a_definition_in_order() -> None:
    violations = check(
        {
            "enabled": "yes",
            "surplus": 1,
            "steps": [
                {"key": "Bad", "kind": "sleep", "sleep_for": "31d", "target": "x"},
                queue("q", max_attempts=0, timeout_seconds=0, payload=float("nan")),
                step("fanout", children=[queue("c", target="-"), None]),
                {"key": "w", "kind": "webhook", "compensate": {"kind": "sql"}},
                join(),
            ],
        },
        "flow",
    )
    assert [violation.step for violation in violations] == [
        None, None, "steps[0]", "steps[0]", "steps[0]", "q", "q", "q", "c", "steps[2].children[1]",
        "w", "compensate:w", "a", "j",
    ]  # fmt: skip
    assert len({violation.message for violation in violations}) == len(violations)


def test_a_violation_has_a_json_shape() -> None:
    assert Violation("a", "wrong").as_json() == {"step": "a", "message": "wrong"}
    assert Violation(None, "wrong").as_json() == {"step": None, "message": "wrong"}


def test_the_number_of_violations_reported_is_bounded() -> None:
    surplus = {f"surplus{at}": at for at in range(100_000)}
    for bad in ({"steps": [None] * 100_000}, {"steps": [surplus]}, surplus):
        violations = check(bad, "flow")
        assert len(violations) == MAX_VIOLATIONS + 1
        assert "bytes as compact JSON" in violations[-1].message


def test_too_many_steps_are_reported_with_their_number() -> None:
    violations = check({"steps": [None] * 100_000}, "flow")
    assert violations[0] == Violation(
        None, "steps must be a list of 1 to 200 steps, not of 100,000"
    )


def test_every_pair_of_kinds_side_by_side_is_refused_only_for_its_pairing() -> None:
    for one, two in itertools.product(USES, USES):
        first, second = step(one, "a"), step(two, "b")
        if two == "fanout":
            second["children"] = [queue("d")]
        violations = found(first, second)
        expected = [
            *(["a"] if one == "join" or (one == "fanout" and two != "join") else []),
            *(["b"] if two == "fanout" or (two == "join" and one != "fanout") else []),
        ]
        assert [where for where, _ in violations] == expected
