"""Definitions of declared workflows: every rule, and the immutable form the engine runs."""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Final

from stepwell_engine.core.declared.definition import ACTION_KINDS, Definition, Kind, Step
from stepwell_engine.core.declared.fields import CHECKS, KEY, sealed_secret
from stepwell_engine.core.declared.structure import (
    ALLOWED,
    FIELDS,
    NOT_IN_COMPENSATION,
    OPTIONAL,
    REQUIRED,
    Place,
    Role,
    places,
)
from stepwell_engine.core.values import durations
from stepwell_engine.core.values.excerpt import excerpt
from stepwell_engine.core.values.jsonvalue import encode
from stepwell_engine.limits import (
    DEFAULT_ACTION_TIMEOUT,
    DEFAULT_ATTEMPTS,
    DEFAULT_SIGNAL_TIMEOUT,
    DEFAULT_SUBWORKFLOW_TIMEOUT,
    MAX_CHILDREN,
    MAX_DEFINITION,
    MAX_STEPS,
    MAX_VIOLATIONS,
    SECOND,
)

_DEFAULT_TIMEOUTS: Final[Mapping[Kind, int]] = {
    **dict.fromkeys(ACTION_KINDS, DEFAULT_ACTION_TIMEOUT),
    Kind.SUBWORKFLOW: DEFAULT_SUBWORKFLOW_TIMEOUT,
    Kind.WAIT_FOR_SIGNAL: DEFAULT_SIGNAL_TIMEOUT,
}


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
    violation = _list_violation("steps", document.get("steps"), MAX_STEPS)
    if violation:
        yield Violation(None, violation)
    keys: dict[str, str] = {}
    for place in places(document):
        for message in chain(_step(place, workflow, sealed), _repeated(place, keys)):
            yield Violation(place.label, message)
    yield from _pairs([place for place in places(document) if place.role is Role.TOP])


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


def _list_violation(name: str, value: object, most: int) -> str | None:
    if not isinstance(value, list):
        return f"{name} must be a list of 1 to {most} steps, not {excerpt(value)}"
    if not 1 <= len(value) <= most:
        return f"{name} must be a list of 1 to {most} steps, not of {len(value):,}"
    return None


def _step(place: Place, workflow: str, sealed: bool) -> Iterator[str]:
    step = place.step
    if not isinstance(step, dict):
        yield f"a {place.role.value} must be an object, not {excerpt(step)}"
        return
    kind = place.kind()
    if place.role is not Role.COMPENSATION:
        key_violation = (
            KEY.violation("key", step["key"]) if "key" in step else f"key is missing: {KEY.words}"
        )
        if key_violation:
            yield key_violation
    if kind is None:
        yield _kind_violation(place)
    else:
        for name, right in REQUIRED[kind].items():
            if name not in step:
                yield f"{kind} needs {name}: {right}"
    for name, value in step.items():
        message = _field(place, kind, name, value, sealed)
        if message:
            yield message
    if kind is Kind.SUBWORKFLOW and step.get("target") == workflow:
        yield f'target must be another workflow: "{workflow}" may not start itself'


def _kind_violation(place: Place) -> str:
    allowed = ", ".join(kind for kind in Kind if kind in ALLOWED[place.role])
    if "kind" not in place.step:
        return f"kind is missing: a {place.role.value} is one of {allowed}"
    given = excerpt(place.step["kind"])
    return f"kind of a {place.role.value} must be one of {allowed}, not {given}"


def _field(
    place: Place, kind: Kind | None, name: object, value: object, sealed: bool
) -> str | None:
    """What is wrong with one field, its place included; `kind` None if that is wrong itself."""
    if name == "secret_set":
        return "secret_set only shows that there is a secret: send the secret itself instead"
    if not isinstance(name, str) or name not in FIELDS:
        return f"unknown field {excerpt(name)}: a step has {', '.join(FIELDS)}"
    if place.role is Role.COMPENSATION and name in NOT_IN_COMPENSATION:
        return f"a compensation may not have {name}: remove it"
    if name == "children" and place.role is Role.CHILD:
        return "a fan-out child may not have children: they nest one level only"
    if name in ("key", "kind"):
        return None
    if kind is not None and name not in OPTIONAL[kind]:
        return _unused(kind, name)
    if name == "children":
        return _list_violation("children", value, MAX_CHILDREN)
    if name == "compensate":
        return None  # a place of its own
    if name == "secret" and sealed:
        return sealed_secret(value, kind)
    return CHECKS[name](value, kind)


def _unused(kind: Kind, name: str) -> str:
    if name == "children":
        return f"{kind} may not have children: only a fanout has"
    if name == "compensate":
        return f"{kind} may not have compensate: it has nothing to undo"
    takes = ", ".join(field for field in FIELDS if field in OPTIONAL[kind]) or "key and kind alone"
    return f"{kind} does not use {name} (it takes {takes}): remove it"


def _repeated(place: Place, keys: dict[str, str]) -> Iterator[str]:
    """Whether an earlier step has the key; notes it in `keys`, key to path."""
    if place.role is Role.COMPENSATION or place.label == place.path:
        return
    first = keys.setdefault(place.label, place.path)
    if first != place.path:
        yield (
            f"key of {place.path} is the key of {first} too: keys are unique over the whole "
            "definition, children included"
        )


def _pairs(tops: list[Place]) -> Iterator[Violation]:
    kinds = [place.kind() for place in tops]
    for place, before, kind, after in zip(
        tops, [None, *kinds], kinds, [*kinds[1:], None], strict=False
    ):
        if kind is Kind.FANOUT and after is not Kind.JOIN:
            yield Violation(place.label, "a fanout must be followed at once by its join")
        if kind is Kind.JOIN and before is not Kind.FANOUT:
            yield Violation(place.label, "a join must stand right after its fanout")


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
    seconds = body.get("timeout_seconds")
    compensation = body.get("compensate")
    return Step(
        ordinal=ordinal,
        key=key,
        kind=kind,
        target=body.get("target"),
        payload=body.get("payload", {}) if "payload" in OPTIONAL[kind] else None,
        secret=body.get("secret"),
        max_attempts=body.get("max_attempts", DEFAULT_ATTEMPTS),
        timeout=_DEFAULT_TIMEOUTS.get(kind, 0) if seconds is None else round(seconds * SECOND),
        sleep_for=durations.parse(body["sleep_for"]) if "sleep_for" in body else 0,
        signal=body.get("signal"),
        children=children,
        compensate=None
        if compensation is None
        else _built(compensation, ordinal, key=f"compensate:{key}"),
    )


def map_secrets(document: Any, change: Callable[[str], str]) -> Any:
    """A deep copy of a valid document with `change` applied to every secret."""
    copied = copy.deepcopy(document)
    for place in places(copied):
        if "secret" in place.step:
            place.step["secret"] = change(place.step["secret"])
    return copied


def hide_secrets(document: Any) -> Any:
    """A deep copy of a valid document where `"secret_set": true` stands for every secret."""
    copied = copy.deepcopy(document)
    for place in places(copied):
        if place.step.pop("secret", None) is not None:
            place.step["secret_set"] = True
    return copied
