"""The steps of a document, valid or not: which there are, and where they stand."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.declared.fields import KEY
from stepwell_engine.core.declared.kinds import KINDS, Role, kinds_of

_BY_NAME: Final[Mapping[Role, Mapping[str, Kind]]] = {
    role: {kind.value: kind for kind in kinds_of(role)} for role in Role
}


@dataclass(frozen=True, slots=True)
class DocumentStep:
    """A step of a document: what stands there (`body`), and what messages call it.

    `kind` is None unless it is one that may stand there. `label` is the step's key
    (`compensate:<key>` for a compensation), or `path` where there is no valid key. `path` is
    like `steps[3].children[0]`.
    """

    role: Role
    path: str
    label: str
    body: Any
    kind: Kind | None


def walk_steps(document: object) -> Iterator[DocumentStep]:
    """Every step of a document, valid or not, in definition order.

    A fan-out's children follow it, a compensation follows its step. What stands in `children` or
    `compensate` where these do not belong is no step.
    """
    steps = document.get("steps") if isinstance(document, dict) else None
    for index, body in enumerate(steps if isinstance(steps, list) else ()):
        top = _with_key(Role.TOP, f"steps[{index}]", body)
        yield from _with_compensation(top)
        children = top.body.get("children") if _may_have(top, "children") else None
        for at, child in enumerate(children if isinstance(children, list) else ()):
            path = f"{top.path}.children[{at}]"
            yield from _with_compensation(_with_key(Role.CHILD, path, child))


def _may_have(step: DocumentStep, field: str) -> bool:
    """Whether such a field is one of its kind; a kind that is misspelt may be any."""
    if not isinstance(step.body, dict):
        return False
    return step.kind is None or field in KINDS[step.kind].fields


def _with_compensation(step: DocumentStep) -> Iterator[DocumentStep]:
    yield step
    if _may_have(step, "compensate") and "compensate" in step.body:
        path = f"{step.path}.compensate"
        label = path if step.label == step.path else f"compensate:{step.label}"
        body = step.body["compensate"]
        yield DocumentStep(Role.COMPENSATION, path, label, body, _kind(Role.COMPENSATION, body))


def _with_key(role: Role, path: str, body: object) -> DocumentStep:
    key = body.get("key") if isinstance(body, dict) else None
    valid = isinstance(key, str) and KEY.violation("key", key) is None
    label = key if valid and isinstance(key, str) else path
    return DocumentStep(role, path, label, body, _kind(role, body))


def _kind(role: Role, body: object) -> Kind | None:
    value = body.get("kind") if isinstance(body, dict) else None
    return _BY_NAME[role].get(value) if isinstance(value, str) else None
