"""Valid definitions of all kinds of steps, generated."""

import copy
from typing import Any

from hypothesis import strategies as st

from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.declared.kinds import ACTION_KINDS

payloads = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(codec="utf-8"), max_size=10),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)  # fmt: skip
TARGETS = {
    Kind.ENQUEUE: st.from_regex(r"[a-z][a-z0-9_]{0,47}", fullmatch=True),
    Kind.FUNCTION: st.from_regex(r"[a-z0-9][a-z0-9_-]{0,63}", fullmatch=True),
    Kind.SUBWORKFLOW: st.sampled_from(["other", "0-x"]),
    Kind.WEBHOOK: st.sampled_from(["http://h", "https://example.com:8443/x?y#z", "http://[::1]/"]),
    Kind.SQL: st.sampled_from(["select 1", "delete from t"]),
}


def bodies(kind: Kind, compensable: bool) -> st.SearchStrategy[dict[str, Any]]:
    """Valid steps of an action kind or subworkflow, without keys."""
    optional: dict[str, st.SearchStrategy[Any]] = {
        "max_attempts": st.integers(1, 20),
        "timeout_seconds": st.one_of(st.integers(1, 600), st.floats(1, 600)),
    }
    if kind is not Kind.SQL:
        optional["payload"] = payloads
    if kind is Kind.WEBHOOK:
        optional["secret"] = st.sampled_from(["s", "whsec_QUJD"])
    if compensable:
        optional["compensate"] = actions(False)
    return st.fixed_dictionaries(
        {"kind": st.just(str(kind)), "target": TARGETS[kind]}, optional=optional
    )


def actions(compensable: bool) -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(sorted(ACTION_KINDS)).flatmap(lambda kind: bodies(kind, compensable))


tops = st.one_of(
    actions(True).map(lambda step: [step]),
    bodies(Kind.SUBWORKFLOW, True).map(lambda step: [step]),
    st.sampled_from(["1ms", "30d", "PT1H", 0.001, 5]).map(
        lambda length: [{"kind": "sleep", "sleep_for": length}]
    ),
    st.sampled_from(["go", "a.b"]).map(lambda name: [{"kind": "wait_for_signal", "signal": name}]),
    st.lists(actions(True), min_size=1, max_size=4).map(
        lambda children: [{"kind": "fanout", "children": children}, {"kind": "join"}]
    ),
)


@st.composite
def valid_documents(draw: st.DrawFn) -> dict[str, Any]:
    groups = draw(st.lists(tops, min_size=1, max_size=5))
    steps = copy.deepcopy([step for group in groups for step in group])
    every = [one for step in steps for one in (step, *step.get("children", []))]
    for at, step in enumerate(every):
        step["key"] = f"k{at}"
    return {"steps": steps}
