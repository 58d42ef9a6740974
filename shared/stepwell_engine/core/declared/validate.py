"""Definitions of declared workflows: every rule, and the immutable form the engine runs."""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from stepwell_engine.core.declared.definition import Definition, Kind, Step
from stepwell_engine.core.declared.fields import KEY, list_violation, sealed_secret_violation
from stepwell_engine.core.declared.kinds import (
    FIELDS,
    KINDS,
    NOT_IN_COMPENSATION,
    OF_ANY_KIND,
    Role,
    kinds_of,
)
from stepwell_engine.core.declared.structure import DocumentStep, walk_steps
from stepwell_engine.core.values import durations
from stepwell_engine.core.values.excerpt import excerpt
from stepwell_engine.core.values.jsonvalue import encode
from stepwell_engine.limits import (
    DEFAULT_ATTEMPTS,
    MAX_DEFINITION,
    MAX_STEPS,
    MAX_VIOLATIONS,
    SECOND,
)


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing wrong with a definition.

    `step` is the key of the step (`compensate:<key>` for its compensation), its path
    (`steps[3].children[0]`) if it has no valid key, or None for the definition as a whole.
    """

    step: str | None
    message: str

    def as_json(self) -> dict[str, str | None]:
        """A member of `violations` in the problem document."""
        return {"step": self.step, "message": self.message}


def check(document: object, workflow: str, sealed: bool = False) -> list[Violation]:
    """All violations of a definition's body, `{"enabled"?: bool, "steps": […]}`; none: valid.

    Never raises, whatever the document. With `sealed` its secrets are sealed text, so that their
    form and the size of the whole are not checked. At most MAX_VIOLATIONS are returned.
    """
    found = list(islice(_violations(document, workflow, sealed), MAX_VIOLATIONS))
    return found + list(_whole_size(document, sealed, bool(found)))


def _violations(document: object, workflow: str, sealed: bool) -> Iterator[Violation]:
    if not isinstance(document, dict):
        yield Violation(
            None, f'a definition must be an object with "steps", not {excerpt(document)}'
        )
        return
    for name in document:
        if name not in ("enabled", "steps"):
            yield Violation(
                None, f"unknown field {excerpt(name)}: a definition has enabled and steps"
            )
    if not isinstance(document.get("enabled", True), bool):
        yield Violation(None, f"enabled must be true or false, not {excerpt(document['enabled'])}")
    violation = list_violation("steps", document.get("steps"), MAX_STEPS)
    if violation:
        yield Violation(None, violation)
    keys: dict[str, str] = {}
    tops: list[DocumentStep] = []
    for step in walk_steps(document):
        if step.role is Role.TOP:
            tops.append(step)
        for message in chain(_step(step, workflow, sealed), _repeated(step, keys)):
            yield Violation(step.label, message)
    yield from _pairs(tops)


def _whole_size(document: object, sealed: bool, faulty: bool) -> Iterator[Violation]:
    try:
        size = len(encode(document))
    except ValueError as error:
        if not faulty:
            yield Violation(None, f"the definition must be JSON: {error}")
        return
    if size > MAX_DEFINITION and not sealed:
        yield Violation(
            None,
            f"the definition has {size:,} bytes as compact JSON, "
            f"at most {MAX_DEFINITION:,} are allowed",
        )


def _step(step: DocumentStep, workflow: str, sealed: bool) -> Iterator[str]:
    body = step.body
    if not isinstance(body, dict):
        yield f"a {step.role.value} must be an object, not {excerpt(body)}"
        return
    kind = step.kind
    if step.role is not Role.COMPENSATION:
        key_violation = (
            KEY.violation("key", body["key"]) if "key" in body else f"key is missing: {KEY.words}"
        )
        if key_violation:
            yield key_violation
    if kind is None:
        yield _kind_violation(step)
    else:
        for name, field in KINDS[kind].fields.items():
            if field.required and name not in body:
                yield f"{kind} needs {name}: {field.right}"
    for name, value in body.items():
        message = _field(step, kind, name, value, sealed)
        if message:
            yield message
    if kind is Kind.SUBWORKFLOW and body.get("target") == workflow:
        yield f'target must be another workflow: "{workflow}" may not start itself'


def _kind_violation(step: DocumentStep) -> str:
    allowed = ", ".join(kinds_of(step.role))
    if "kind" not in step.body:
        return f"kind is missing: a {step.role.value} is one of {allowed}"
    given = excerpt(step.body["kind"])
    return f"kind of a {step.role.value} must be one of {allowed}, not {given}"


def _field(
    step: DocumentStep, kind: Kind | None, name: object, value: object, sealed: bool
) -> str | None:
    """What is wrong with one field, in its role too; `kind` None if that is wrong itself."""
    if name == "secret_set":
        return "secret_set only shows that there is a secret: send the secret itself instead"
    if not isinstance(name, str) or name not in FIELDS:
        return f"unknown field {excerpt(name)}: a step has {', '.join(FIELDS)}"
    if step.role is Role.COMPENSATION and name in NOT_IN_COMPENSATION:
        return f"a compensation may not have {name}: remove it"
    if name == "children" and step.role is Role.CHILD:
        return "a fan-out child may not have children: they nest one level only"
    if name in ("key", "kind"):
        return None
    if kind is not None and name not in KINDS[kind].fields:
        return _unused(kind, name)
    if name == "secret" and sealed:
        return sealed_secret_violation(value)
    if kind is None:
        return OF_ANY_KIND[name].violation(name, value)
    return KINDS[kind].fields[name].violation(f"{name} of {kind}", value)


def _unused(kind: Kind, name: str) -> str:
    if name == "children":
        return f"{kind} may not have children: only a fanout has"
    if name == "compensate":
        return f"{kind} may not have compensate: it has nothing to undo"
    takes = ", ".join(KINDS[kind].fields) or "key and kind alone"
    return f"{kind} does not use {name} (it takes {takes}): remove it"


def _repeated(step: DocumentStep, keys: dict[str, str]) -> Iterator[str]:
    """Whether an earlier step has the key; notes it in `keys`, key to path."""
    if step.role is Role.COMPENSATION or step.label == step.path:
        return
    first = keys.setdefault(step.label, step.path)
    if first != step.path:
        yield (
            f"key of {step.path} is the key of {first} too: keys are unique over the whole "
            "definition, children included"
        )


def _pairs(tops: list[DocumentStep]) -> Iterator[Violation]:
    kinds = [step.kind for step in tops]
    for step, before, kind, after in zip(
        tops, [None, *kinds], kinds, [*kinds[1:], None], strict=False
    ):
        if kind is Kind.FANOUT and after is not Kind.JOIN:
            yield Violation(step.label, "a fanout must be followed at once by its join")
        if kind is Kind.JOIN and before is not Kind.FANOUT:
            yield Violation(step.label, "a join must stand right after its fanout")


def build(document: Any, project: str, workflow: str, version: int) -> Definition:
    """The Definition of a document that `check` found valid, with the defaults filled in."""
    steps: list[Step] = []
    ordinal = 0
    for body in document["steps"]:
        children = body.get("children", [])
        steps.append(
            _built(
                body,
                ordinal,
                tuple(_built(child, ordinal + at) for at, child in enumerate(children, 1)),
            )
        )
        ordinal += 1 + len(children)
    return Definition(project, workflow, version, tuple(steps))


def _built(
    body: Mapping[str, Any], ordinal: int, children: tuple[Step, ...] = (), key: str | None = None
) -> Step:
    kind = Kind(body["kind"])
    key = body["key"] if key is None else key
    given = {name: body.get(name, field.default) for name, field in KINDS[kind].fields.items()}
    compensation = given.get("compensate")
    return Step(
        ordinal=ordinal,
        key=key,
        kind=kind,
        target=given.get("target"),
        payload=given.get("payload"),
        secret=given.get("secret"),
        max_attempts=given.get("max_attempts", DEFAULT_ATTEMPTS),
        timeout=round(given.get("timeout_seconds", 0) * SECOND),
        sleep_for=durations.parse(given["sleep_for"]) if "sleep_for" in given else 0,
        signal=given.get("signal"),
        children=children,
        compensate=None
        if compensation is None
        else _built(compensation, ordinal, key=f"compensate:{key}"),
    )


def map_secrets(document: Any, change: Callable[[str], str]) -> Any:
    """A deep copy of a valid document with `change` applied to every secret."""
    copied = copy.deepcopy(document)
    for step in walk_steps(copied):
        if "secret" in step.body:
            step.body["secret"] = change(step.body["secret"])
    return copied


def hide_secrets(document: Any) -> Any:
    """A deep copy of a valid document where `"secret_set": true` stands for every secret."""
    copied = copy.deepcopy(document)
    for step in walk_steps(copied):
        if step.body.pop("secret", None) is not None:
            step.body["secret_set"] = True
    return copied
