"""The schema of a definition in the OpenAPI document, made of the descriptions of the kinds.

It is documentation: what is checked, all at once and in words, is in core.declared.validate.
"""

from collections.abc import Mapping
from typing import Any, Final

from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.declared.fields import KEY, Field
from stepwell_engine.core.declared.kinds import KINDS, Role, kinds_of
from stepwell_engine.limits import MAX_DEFINITION, MAX_STEPS

Schema = dict[str, Any]

# One of several kinds; children of a fan-out have the fields of any other step.
_UNIONS: Final = {Role.TOP: "Step", Role.CHILD: "FanoutChild", Role.COMPENSATION: "Compensation"}
_SUFFIXES: Final = {Role.TOP: "Step", Role.CHILD: "Step", Role.COMPENSATION: "Compensation"}


def components() -> Schema:
    """The schemas of a definition and of all that is in it, by the names of their components."""
    found: Schema = {"DefinitionBody": _definition()}
    for role, name in _UNIONS.items():
        found[name] = _union(role)
        for kind in kinds_of(role):
            found[_component(kind, role)] = _step(kind, role)
    return found


def _definition() -> Schema:
    return {
        "type": "object",
        "title": "DefinitionBody",
        "description": f"A definition: at most {MAX_DEFINITION:,} bytes as compact JSON.",
        "properties": {
            "enabled": {
                "type": "boolean",
                "default": True,
                "description": "Whether runs of this version may start.",
            },
            "steps": {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_STEPS,
                "items": _ref(_UNIONS[Role.TOP]),
                "description": "Carried out one after the other. A fanout is followed by a join.",
            },
        },
        "required": ["steps"],
        "additionalProperties": False,
    }


def _union(role: Role) -> Schema:
    names = {kind.value: _component(kind, role) for kind in kinds_of(role)}
    return {
        "title": _UNIONS[role],
        "description": f"A {role.value}: its kind says which fields it has.",
        "oneOf": [_ref(name) for name in names.values()],
        "discriminator": {
            "propertyName": "kind",
            "mapping": {kind: _ref(name)["$ref"] for kind, name in names.items()},
        },
    }


def _step(kind: Kind, role: Role) -> Schema:
    described = KINDS[kind]
    properties: Schema = {"kind": {"type": "string", "const": kind.value}}
    fields: Mapping[str, Field] = described.fields
    required = ["kind", *(name for name, field in fields.items() if field.required)]
    if role is Role.COMPENSATION:
        fields = {name: field for name, field in fields.items() if name != "compensate"}
    else:
        properties = {"key": {**KEY.schema, "description": _sentence(KEY.words)}, **properties}
        required = ["key", *required]
    properties |= {name: _property(name, field) for name, field in fields.items()}
    output = f" Output: {described.output}." if described.output else ""
    return {
        "type": "object",
        "title": _component(kind, role),
        "description": f"{_sentence(described.does)}{output}",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _property(name: str, field: Field) -> Schema:
    shown: Schema = {**field.schema, "description": _sentence(field.right)}
    if field.default is not None:
        shown["default"] = field.default
    if name == "children":
        shown["items"] = _ref(_UNIONS[Role.CHILD])
    if name == "compensate":
        shown |= _ref(_UNIONS[Role.COMPENSATION])
    return shown


def _component(kind: Kind, role: Role) -> str:
    return kind.value.title().replace("_", "") + _SUFFIXES[role]


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."
