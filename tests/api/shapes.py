"""Whether what the API answers is what its OpenAPI document says."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from stepwell_engine.api import openapi
from stepwell_engine.api.routes import ROUTES

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
    "null": type(None),
}


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document."""
    loaded: dict[str, Any] = json.loads(openapi.document(ROUTES))
    return loaded


def differences(method: str, path: str, status: int, content_type: str, body: Any) -> list[str]:
    """How an answer differs from the document; a path without a route has nothing to differ."""
    route = next((one for one in ROUTES if one.method == method and one.pattern.match(path)), None)
    if route is None:
        return []
    operation = document()["paths"][route.path.replace("<", "{").replace(">", "}")][method.lower()]
    response = operation["responses"].get(str(status))
    if response is None:
        return [f"{operation['operationId']} does not document the status {status}"]
    if not response["content"]:
        return [] if body is None else ["there is a body, but none is documented"]
    if content_type not in response["content"]:
        return [f"the content type {content_type} is not documented"]
    return list(_faults(response["content"][content_type].get("schema", {}), body, "$"))


def _faults(schema: Any, value: Any, where: str) -> Iterator[str]:
    if "$ref" in schema:
        schema = document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        if all(any(_faults(one, value, where)) for one in schema["anyOf"]):
            yield f"{where} is none of what is allowed: {value!r}"
        return
    if "type" in schema:
        right = _TYPES[schema["type"]]
        if not isinstance(value, right) or (isinstance(value, bool) and right is not bool):
            yield f"{where} is not of type {schema['type']}: {value!r}"
            return
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        yield f"{where} is not one of the values allowed: {value!r}"
    yield from _fields(schema, value, where)
    for at, inner in enumerate(value if "items" in schema else ()):
        yield from _faults(schema["items"], inner, f"{where}[{at}]")


def _fields(schema: Any, value: Any, where: str) -> Iterator[str]:
    if "properties" not in schema:
        return
    for name in schema.get("required", []):
        if name not in value:
            yield f"{where}.{name} is missing"
    for name, inner in value.items():
        if name in schema["properties"]:
            yield from _faults(schema["properties"][name], inner, f"{where}.{name}")
        elif schema.get("title") != "ProblemView":
            yield f"{where}.{name} is not documented"
