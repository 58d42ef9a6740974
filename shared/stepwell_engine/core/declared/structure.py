"""The shape of a declared workflow: which field belongs to which kind, and where steps stand."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from stepwell_engine.core.declared.definition import ACTION_KINDS, Kind
from stepwell_engine.core.declared.fields import KEY

FIELDS: Final = (
    "key",
    "kind",
    "target",
    "payload",
    "secret",
    "max_attempts",
    "timeout_seconds",
    "sleep_for",
    "signal",
    "children",
    "compensate",
)

# What a kind takes beside key and kind, and what it cannot do without.
_RETRIED = frozenset({"target", "max_attempts", "timeout_seconds", "compensate"})
OPTIONAL: Final[Mapping[Kind, frozenset[str]]] = {
    Kind.ENQUEUE: _RETRIED | {"payload"},
    Kind.SQL: _RETRIED,
    Kind.WEBHOOK: _RETRIED | {"payload", "secret"},
    Kind.FUNCTION: _RETRIED | {"payload"},
    Kind.SLEEP: frozenset({"sleep_for"}),
    Kind.WAIT_FOR_SIGNAL: frozenset({"signal", "timeout_seconds"}),
    Kind.FANOUT: frozenset({"children"}),
    Kind.JOIN: frozenset(),
    Kind.SUBWORKFLOW: _RETRIED | {"payload"},
}
REQUIRED: Final[Mapping[Kind, Mapping[str, str]]] = {
    Kind.ENQUEUE: {"target": "the name of a queue"},
    Kind.SQL: {"target": "a statement"},
    Kind.WEBHOOK: {"target": "an http or https URL"},
    Kind.FUNCTION: {"target": "the name of a function"},
    Kind.SLEEP: {"sleep_for": "a duration of at most 30 days, like 30m"},
    Kind.WAIT_FOR_SIGNAL: {"signal": "the name of the signal"},
    Kind.FANOUT: {"children": "a list of steps"},
    Kind.JOIN: {},
    Kind.SUBWORKFLOW: {"target": "the name of a workflow"},
}
NOT_IN_COMPENSATION: Final = frozenset({"key", "children", "compensate", "sleep_for", "signal"})


class Role(Enum):
    """Where a step stands in its definition."""

    TOP = "step"
    CHILD = "fan-out child"
    COMPENSATION = "compensation"


ALLOWED: Final[Mapping[Role, frozenset[Kind]]] = {
    Role.TOP: frozenset(Kind),
    Role.CHILD: ACTION_KINDS,
    Role.COMPENSATION: ACTION_KINDS,
}
_KINDS: Final[Mapping[str, Kind]] = {kind.value: kind for kind in Kind}


@dataclass(frozen=True, slots=True)
class Place:
    """A step in a document: what stands there, and what messages call it.

    `label` is the step's key (`compensate:<key>` for a compensation), or `path` where there is
    no valid key. `path` is like `steps[3].children[0]`.
    """

    role: Role
    path: str
    label: str
    step: Any

    def kind(self) -> Kind | None:
        """The kind, if it is one that may stand here."""
        value = self.step.get("kind") if isinstance(self.step, dict) else None
        kind = _KINDS.get(value) if isinstance(value, str) else None
        return kind if kind in ALLOWED[self.role] else None


def places(document: object) -> Iterator[Place]:
    """Every step of a document, valid or not, in definition order.

    A fan-out's children follow it, a compensation follows its step. What stands in `children` or
    `compensate` where these do not belong is no step.
    """
    steps = document.get("steps") if isinstance(document, dict) else None
    for index, step in enumerate(steps if isinstance(steps, list) else ()):
        top = _place(Role.TOP, f"steps[{index}]", step)
        yield from _with_compensation(top)
        for at, child in enumerate(_children(top)):
            yield from _with_compensation(_place(Role.CHILD, f"{top.path}.children[{at}]", child))


def _children(place: Place) -> list[object]:
    # A kind that is misspelt may have been meant as a fan-out.
    if not isinstance(place.step, dict) or place.kind() not in (Kind.FANOUT, None):
        return []
    children = place.step.get("children")
    return children if isinstance(children, list) else []


def _with_compensation(place: Place) -> Iterator[Place]:
    yield place
    if isinstance(place.step, dict) and "compensate" in place.step:
        kind = place.kind()
        if kind is None or "compensate" in OPTIONAL[kind]:
            named = place.label != place.path
            yield Place(
                Role.COMPENSATION,
                f"{place.path}.compensate",
                f"compensate:{place.label}" if named else f"{place.path}.compensate",
                place.step["compensate"],
            )


def _place(role: Role, path: str, step: object) -> Place:
    key = step.get("key") if isinstance(step, dict) else None
    valid = isinstance(key, str) and KEY.violation("key", key) is None
    return Place(role, path, key if valid and isinstance(key, str) else path, step)
