"""From a valid document to the definition the engine runs, and what happens to its secrets."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell_engine.core.declared.definition import Definition, Kind, Step
from stepwell_engine.core.declared.kinds import ACTION_KINDS, FIELDS
from stepwell_engine.core.declared.validate import build, check, hide_secrets, map_secrets
from stepwell_engine.core.values.excerpt import excerpt
from stepwell_engine.limits import DAY, HOUR, MINUTE, SECOND
from tests.core.documents import payloads, valid_documents

# --- examples ---------------------------------------------------------------------------------

ORDER = {
    "steps": [
        {
            "key": "pay",
            "kind": "webhook",
            "target": "https://pay.example.com/captures",
            "payload": {"cents": 1250, "currency": "chf"},
            "secret": "sign-with-this",
            "max_attempts": 6,
            "timeout_seconds": 12.5,
            "compensate": {
                "kind": "webhook",
                "target": "https://pay.example.com/refunds",
                "payload": {"cents": 1250},
                "secret": "whsec_cmVmdW5k",
                "timeout_seconds": 20,
            },
        },
        {"key": "open", "kind": "sql", "target": "update seats set taken = true where id = 7"},
        {"key": "settle", "kind": "sleep", "sleep_for": "1h30m"},
        {"key": "greet", "kind": "enqueue", "target": "mails", "payload": ["hello", None]},
    ]
}

EVERYTHING = {
    "enabled": False,
    "steps": [
        {
            "key": "spread",
            "kind": "fanout",
            "children": [
                {
                    "key": "crm",
                    "kind": "webhook",
                    "target": "https://crm.example.com/",
                    "secret": "child",
                    "compensate": {"kind": "function", "target": "forget", "max_attempts": 9},
                },
                {"key": "index", "kind": "function", "target": "reindex", "timeout_seconds": 600},
            ],
        },
        {"key": "gather", "kind": "join"},
        {"key": "approval", "kind": "wait_for_signal", "signal": "approved"},
        {"key": "patience", "kind": "wait_for_signal", "signal": "go", "timeout_seconds": 60},
        {
            "key": "ship",
            "kind": "subworkflow",
            "target": "shipping",
            "payload": {"from": "basel"},
            "max_attempts": 1,
            "compensate": {"kind": "enqueue", "target": "returns"},
        },
    ],
}


def test_an_order_pipeline_is_valid() -> None:
    assert check(ORDER, "orders") == []


def test_builds_an_order_pipeline() -> None:
    refund = Step(
        ordinal=0,
        key="compensate:pay",
        kind=Kind.WEBHOOK,
        target="https://pay.example.com/refunds",
        payload={"cents": 1250},
        secret="whsec_cmVmdW5k",
        max_attempts=3,
        timeout=20 * SECOND,
    )
    assert build(ORDER, "prj", "orders", 4) == Definition(
        project="prj",
        workflow="orders",
        version=4,
        steps=(
            Step(
                ordinal=0,
                key="pay",
                kind=Kind.WEBHOOK,
                target="https://pay.example.com/captures",
                payload={"cents": 1250, "currency": "chf"},
                secret="sign-with-this",
                max_attempts=6,
                timeout=12_500,
                compensate=refund,
            ),
            Step(
                ordinal=1,
                key="open",
                kind=Kind.SQL,
                target="update seats set taken = true where id = 7",
                timeout=30 * SECOND,
            ),
            Step(ordinal=2, key="settle", kind=Kind.SLEEP, sleep_for=90 * MINUTE),
            Step(
                ordinal=3,
                key="greet",
                kind=Kind.ENQUEUE,
                target="mails",
                payload=["hello", None],
                timeout=30 * SECOND,
            ),
        ),
    )


def test_children_are_counted_after_their_fanout_and_compensations_with_their_step() -> None:
    assert check(EVERYTHING, "orders") == []
    definition = build(EVERYTHING, "prj", "orders", 1)
    assert [(step.ordinal, step.key) for step in definition.flat] == [
        (0, "spread"), (1, "crm"), (2, "index"), (3, "gather"), (4, "approval"), (5, "patience"),
        (6, "ship"),
    ]  # fmt: skip
    found = [step.compensate for step in definition.flat if step.compensate]
    assert [(one.ordinal, one.key, one.max_attempts) for one in found] == [
        (1, "compensate:crm", 9), (6, "compensate:ship", 3)
    ]  # fmt: skip


def test_timeouts_default_by_kind() -> None:
    definition = build(EVERYTHING, "prj", "orders", 1)
    assert {step.key: step.timeout for step in definition.flat} == {
        "spread": 0, "crm": 30 * SECOND, "index": 600 * SECOND, "gather": 0, "approval": 7 * DAY,
        "patience": MINUTE, "ship": 24 * HOUR,
    }  # fmt: skip


# --- secrets ----------------------------------------------------------------------------------


def test_every_secret_is_mapped_and_the_document_left_alone() -> None:
    both = {"steps": [*ORDER["steps"], *EVERYTHING["steps"]]}  # type: ignore[misc]
    before = copy.deepcopy(both)
    mapped = map_secrets(both, lambda plain: f"sealed({plain})")
    assert both == before
    assert mapped["steps"][0]["secret"] == "sealed(sign-with-this)"
    assert mapped["steps"][0]["compensate"]["secret"] == "sealed(whsec_cmVmdW5k)"
    assert mapped["steps"][4]["children"][0]["secret"] == "sealed(child)"
    assert json.dumps(mapped).count("sealed(") == 3
    assert map_secrets(mapped, lambda sealed: sealed[7:-1]) == both
    assert check(mapped, "orders", sealed=True) == []
    mapped["steps"][0]["payload"]["cents"] = 1
    assert both == before


def test_a_shown_definition_says_only_that_there_are_secrets() -> None:
    before = copy.deepcopy(ORDER)
    shown = hide_secrets(ORDER)
    assert before == ORDER
    assert json.dumps(shown).count('"secret_set": true') == 2
    assert '"secret"' not in json.dumps(shown)
    for step in (shown["steps"][0], shown["steps"][0]["compensate"]):
        assert step.pop("secret_set") is True
    expected = copy.deepcopy(ORDER)
    first: Any = expected["steps"][0]
    del first["secret"], first["compensate"]["secret"]
    assert shown == expected


@pytest.mark.parametrize("kind", ["enqueue", "webhook", "function", "subworkflow"])
def test_a_payload_that_is_left_out_is_an_empty_object_and_null_is_null(kind: str) -> None:
    target = "https://a.example" if kind == "webhook" else "other"
    left_out = {"key": "a", "kind": kind, "target": target}
    for step, payload in ((left_out, {}), ({**left_out, "payload": None}, None)):
        built = build({"steps": [step]}, "demo", "orders", 1)
        assert check({"steps": [step]}, "orders") == []
        assert built.steps[0].payload == payload
    compensation = {"kind": "webhook", "target": "https://a.example"}
    document = {"steps": [{**left_out, "compensate": compensation}]}
    compensated = build(document, "demo", "orders", 1).steps[0]
    assert compensated.compensate is not None
    assert compensated.compensate.payload == {}


def test_a_payload_that_looks_like_a_step_keeps_its_secret() -> None:
    payload = {"secret": "not ours", "children": [{"secret": "nor this"}]}
    step = {"key": "a", "kind": "enqueue", "target": "mails", "payload": payload}
    document = {"steps": [step]}
    assert map_secrets(document, str.upper) == document
    assert hide_secrets(document) == document


# --- properties -------------------------------------------------------------------------------

texts = st.one_of(st.text(max_size=20), st.sampled_from([*FIELDS, *Kind, "a", "1m", "https://h"]))
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts, st.just("\ud800"))
anything = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=5)),
    max_leaves=20,
)
some_steps = st.fixed_dictionaries(
    {}, optional={name: st.one_of(anything, texts) for name in FIELDS}
)
likely_steps = st.one_of(
    some_steps,
    st.builds(
        lambda step, kind, children, compensation: {
            **step, "kind": kind, "children": children, "compensate": compensation
        },
        some_steps, st.sampled_from(Kind), st.lists(some_steps, max_size=3), some_steps,
    ),
)  # fmt: skip
likely_documents = st.fixed_dictionaries({"steps": st.lists(likely_steps, max_size=5)})


@given(st.one_of(anything, likely_documents), st.booleans())
def test_no_document_makes_the_check_raise_and_its_words_fit_into_an_answer(
    document: object, sealed: bool
) -> None:
    for violation in check(document, "flow", sealed):
        answer = json.dumps(violation.as_json(), ensure_ascii=False).encode()
        assert len(answer) < 1_000


@given(anything)
def test_an_excerpt_is_one_short_line(value: object) -> None:
    shown = excerpt(value)
    assert shown.isprintable()
    assert 0 < len(shown.encode()) < 1_000


@given(valid_documents())
def test_a_valid_document_builds_with_ordinals_in_definition_order(
    document: dict[str, Any],
) -> None:
    assert check(document, "flow") == []
    definition = build(document, "prj", "flow", 1)
    assert [step.ordinal for step in definition.flat] == list(range(len(definition.flat)))
    assert [step.key for step in definition.flat] == [
        f"k{at}" for at in range(len(definition.flat))
    ]
    for step in definition.flat:
        waits = step.kind in ACTION_KINDS | {Kind.SUBWORKFLOW, Kind.WAIT_FOR_SIGNAL}
        assert (step.timeout >= SECOND) is waits
        assert (step.sleep_for >= 1) is (step.kind is Kind.SLEEP)
        if step.compensate:
            assert step.compensate.ordinal == step.ordinal
            assert step.compensate.key == f"compensate:{step.key}"


@given(valid_documents(), st.data())
def test_one_change_to_a_valid_document_is_refused_or_builds(
    document: dict[str, Any], data: st.DataObject
) -> None:
    every = [one for step in document["steps"] for one in (step, *step.get("children", []))]
    every += [step["compensate"] for step in every if "compensate" in step]
    step = data.draw(st.sampled_from(every))
    step[data.draw(st.sampled_from(FIELDS))] = data.draw(st.one_of(anything, texts, payloads))
    if not check(document, "flow"):
        definition = build(document, "prj", "flow", 1)
        assert [step.ordinal for step in definition.flat] == list(range(len(definition.flat)))


@given(valid_documents())
def test_sealing_and_hiding_leave_no_plain_secret(document: dict[str, Any]) -> None:
    sealed = map_secrets(document, lambda _: "SEALED")
    count = json.dumps(document).count('"secret":')
    assert json.dumps(sealed).count('"secret": "SEALED"') == count
    assert json.dumps(hide_secrets(sealed)).count('"secret_set": true') == count
    assert "SEALED" not in json.dumps(hide_secrets(sealed))
    assert check(sealed, "flow", sealed=True) == []


@pytest.mark.parametrize("key", ["__class__", "constructor"])
def test_odd_field_names_are_just_unknown(key: str) -> None:
    step = {"key": "a", "kind": "sleep", "sleep_for": 1, key: 1}
    assert len(check({"steps": [step]}, "flow")) == 1
