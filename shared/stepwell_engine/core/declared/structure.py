"""The steps of a document, valid or not: which there are, and where they stand."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.declared.fields import KEY
from stepwell_engine.core.declared.kinds import KINDS, KindDescription, Role, kinds_of

_BY_NAME: Final[Mapping[Role, Mapping[str, Kind]]] = {
    role: {kind.value: kind for kind in kinds_of(role)} for role in Role
}


@dataclass(frozen=True, slots=True)
class DocumentStep:
    """A step of a document: what stands there (`body`), and what messages call it.

    `label` is the step's key (`compensate:<key>` for a compensation), or `path` where there is
    no valid key. `path` is like `steps[3].children[0]`.
    """

    role: Role
    path: str
    label: str
    body: Any

    def kind(self) -> Kind | None:
        """The kind, if it is one that may stand here."""
        value = self.body.get("kind") if isinstance(self.body, dict) else None
        return _BY_NAME[self.role].get(value) if isinstance(value, str) else None

    def description(self) -> KindDescription | None:
        """What there is to know of its kind."""
        kind = self.kind()
        return None if kind is None else KINDS[kind]


def walk_steps(document: object) -> Iterator[DocumentStep]:
    """Every step of a document, valid or not, in definition order.

    A fan-out's children follow it, a compensation follows its step. What stands in `children` or
    `compensate` where these do not belong is no step.
    """
    steps = document.get("steps") if isinstance(document, dict) else None
    for index, body in enumerate(steps if isinstance(steps, list) else ()):
        top = _document_step(Role.TOP, f"steps[{index}]", body)
        yield from _with_compensation(top)
        children = top.body.get("children") if _may_have(top, "children") else None
        for at, child in enumerate(children if isinstance(children, list) else ()):
            yield from _with_compensation(
                _document_step(Role.CHILD, f"{top.path}.children[{at}]", child)
            )


def _may_have(step: DocumentStep, field: str) -> bool:
    """Whether such a field is one of its kind; a kind that is misspelt may be any."""
    if not isinstance(step.body, dict):
        return False
    description = step.description()
    return description is None or field in description.fields


def _with_compensation(step: DocumentStep) -> Iterator[DocumentStep]:
    yield step
    if _may_have(step, "compensate") and "compensate" in step.body:
        path = f"{step.path}.compensate"
        label = path if step.label == step.path else f"compensate:{step.label}"
        yield DocumentStep(Role.COMPENSATION, path, label, step.body["compensate"])


def _document_step(role: Role, path: str, body: object) -> DocumentStep:
    key = body.get("key") if isinstance(body, dict) else None
    valid = isinstance(key, str) and KEY.violation("key", key) is None
    return DocumentStep(role, path, key if valid and isinstance(key, str) else path, body)
