"""The schema of a definition says what a definition may be, as far as JSON Schema can."""

import json
from typing import Any

import pytest
from hypothesis import given

from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.declared.kinds import ACTION_KINDS, KINDS
from stepwell_engine.core.declared.validate import build, check
from tests.api.definition_schema import fits, validator
from tests.api.shapes import document
from tests.arch.sources import ROOT
from tests.core.documents import valid_documents

HOOK: dict[str, Any] = {"key": "hook", "kind": "webhook", "target": "https://a.example/x"}
NAP: dict[str, Any] = {"key": "nap", "kind": "sleep", "sleep_for": "1s"}
FAN: dict[str, Any] = {"key": "fan", "kind": "fanout", "children": [HOOK]}
JOIN: dict[str, Any] = {"key": "join", "kind": "join"}
REFUND: dict[str, Any] = {"kind": "enqueue", "target": "emails"}


def of_kind(kind: str, **fields: Any) -> dict[str, Any]:
    return {"key": "one", "kind": kind, **fields}


def test_the_example_fits() -> None:
    example = json.loads((ROOT / "examples" / "order_pipeline" / "workflow.json").read_bytes())
    assert fits(example)


@given(valid_documents())
def test_what_the_engine_takes_fits(definition: dict[str, Any]) -> None:
    assert check(definition, "flow") == []
    assert fits(definition)


BROKEN: dict[str, Any] = {
    "no object": [],
    "no steps": {},
    "an empty list": {"steps": []},
    "201 steps": {"steps": [NAP] * 201},
    "an unknown field": {"steps": [NAP], "name": "flow"},
    "enabled as text": {"steps": [NAP], "enabled": "yes"},
    "a step that is text": {"steps": ["nap"]},
}
BROKEN_STEPS: dict[str, Any] = {
    "no kind": {"key": "one"},
    "an unknown kind": of_kind("loop"),
    "no key": {"kind": "join"},
    "a key in upper case": {**NAP, "key": "Nap"},
    "no target": of_kind("enqueue"),
    "an unknown field": {**NAP, "until": "tomorrow"},
    "a field of another kind": {**NAP, "target": "emails"},
    "a secret that is only shown": {**HOOK, "secret_set": True},
    "a queue in upper case": of_kind("enqueue", target="Emails"),
    "a reserved name": of_kind("subworkflow", target="app"),
    "ftp": {**HOOK, "target": "ftp://a.example"},
    "an empty statement": of_kind("sql", target=""),
    "a long target": of_kind("sql", target="x" * 8193),
    "a long secret": {**HOOK, "secret": "x" * 1025},
    "no attempt": {**HOOK, "max_attempts": 0},
    "21 attempts": {**HOOK, "max_attempts": 21},
    "601 seconds": {**HOOK, "timeout_seconds": 601},
    "no time": of_kind("sleep", sleep_for=0),
    "31 days": of_kind("sleep", sleep_for=31 * 86_400),
    "a wait of 31 days": of_kind("wait_for_signal", signal="go", timeout_seconds=31 * 86_400),
    "a bad signal": of_kind("wait_for_signal", signal="Go!"),
    "no children": {**FAN, "children": []},
    "a child that sleeps": {**FAN, "children": [NAP]},
    "a fan-out in a fan-out": {**FAN, "children": [FAN]},
    "a join with children": {**JOIN, "children": [HOOK]},
    "a sleep with a compensation": {**NAP, "compensate": REFUND},
    "a compensation with a key": {**HOOK, "compensate": {**REFUND, "key": "k"}},
    "a compensation of a compensation": {**HOOK, "compensate": {**REFUND, "compensate": REFUND}},
    "a compensation that sleeps": {**HOOK, "compensate": {"kind": "sleep", "sleep_for": "1s"}},
}


@pytest.mark.parametrize("definition", BROKEN.values(), ids=list(BROKEN))
def test_a_broken_definition_does_not_fit(definition: Any) -> None:
    assert check(definition, "flow") != []
    assert not fits(definition)


@pytest.mark.parametrize("step", BROKEN_STEPS.values(), ids=list(BROKEN_STEPS))
def test_a_broken_step_does_not_fit(step: Any) -> None:
    assert check({"steps": [step]}, "flow") != []
    assert not fits({"steps": [step]})


def schemas() -> Any:
    return document()["components"]["schemas"]


@pytest.mark.parametrize(
    ("union", "kinds"),
    [("Step", set(Kind)), ("FanoutChild", ACTION_KINDS), ("Compensation", ACTION_KINDS)],
)
def test_every_kind_is_known_by_its_name(union: str, kinds: set[Kind]) -> None:
    mapping = schemas()[union]["discriminator"]["mapping"]
    assert set(mapping) == kinds
    assert [one["$ref"] for one in schemas()[union]["oneOf"]] == list(mapping.values())
    for kind, reference in mapping.items():
        shown = schemas()[reference.rpartition("/")[2]]
        assert shown["properties"]["kind"]["const"] == kind
        assert ("key" in shown["properties"]) is (union != "Compensation")


@pytest.mark.parametrize("kind", Kind)
def test_a_kind_shows_its_fields(kind: Kind) -> None:
    name = schemas()["Step"]["discriminator"]["mapping"][kind].rpartition("/")[2]
    shown = schemas()[name]
    fields = KINDS[kind].fields
    assert set(shown["properties"]) == {"key", "kind", *fields}
    assert set(shown["required"]) == {
        "key", "kind", *(name for name, field in fields.items() if field.required)
    }  # fmt: skip
    assert shown["additionalProperties"] is False
    assert all(
        one.get("description") for name, one in shown["properties"].items() if name != "kind"
    )


SMALLEST = [HOOK, NAP, of_kind("function", target="f"), of_kind("enqueue", target="emails"),
            of_kind("sql", target="select 1"), of_kind("wait_for_signal", signal="go"),
            of_kind("subworkflow", target="other")]  # fmt: skip


@pytest.mark.parametrize("step", SMALLEST, ids=lambda step: step["kind"])
def test_the_defaults_shown_are_those_of_the_engine(step: dict[str, Any]) -> None:
    name = schemas()["Step"]["discriminator"]["mapping"][step["kind"]].rpartition("/")[2]
    shown = {
        name: one["default"] for name, one in schemas()[name]["properties"].items()
        if "default" in one
    }  # fmt: skip
    assert build({"steps": [{**shown, **step}]}, "p", "flow", 1) == build(
        {"steps": [step]}, "p", "flow", 1
    )
    assert validator().is_valid({"steps": [{**shown, **step}]})
