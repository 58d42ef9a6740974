"""The body or query string of a request, validated against its model."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from stepwell_engine.api.models import Query
from stepwell_engine.core.values.excerpt import excerpt
from stepwell_engine.errors import Problem

Model = TypeVar("Model", bound=BaseModel)


def checked(model: type[Model], value: Mapping[str, Any]) -> Model:
    """The value as a model. Problem `invalid_request` with all `errors`, each with its location."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        is_query = issubclass(model, Query)
        errors = [_violation(model, is_query, one) for one in error.errors(include_url=False)]
        raise Problem(
            "invalid_request", "; ".join(one["message"] for one in errors), errors=errors
        ) from None


def _violation(model: type[BaseModel], is_query: bool, error: Mapping[str, Any]) -> dict[str, str]:
    location = _location(error["loc"], is_query)
    kind = error["type"]
    if kind == "missing":
        return {"where": location, "message": f"{location} is missing"}
    if kind == "extra_forbidden":
        names = [field.alias or name for name, field in model.model_fields.items()]
        takes = f"allowed are {', '.join(names)}" if names else "none are allowed"
        what = "query parameter" if is_query else "field"
        return {"where": location, "message": f"{location} is an unknown {what}: {takes}"}
    expected = _expected(kind, error.get("ctx", {})) or error["msg"].lower()
    return {
        "where": location,
        "message": f"{location} must be {expected}, not {excerpt(error['input'])}",
    }


def _location(loc: Sequence[str | int], is_query: bool) -> str:
    """`?limit` for a query parameter, `$.command[0]` for a location in a body."""
    steps = [f"[{one}]" if isinstance(one, int) else f".{excerpt(one)[1:-1]}" for one in loc]
    path = "".join(steps)
    return f"?{path[1:]}" if is_query else f"${path}"


def _expected(kind: str, context: Mapping[str, Any]) -> str | None:
    match kind:
        case "value_error":
            return str(context["error"])
        case "int_type" | "int_parsing" | "int_from_float" | "int_parsing_size":
            return "a whole number"
        case "bool_type" | "bool_parsing":
            return "true or false"
        case "string_type":
            return "text"
        case "greater_than_equal":
            return f"at least {context['ge']}"
        case "less_than_equal":
            return f"at most {context['le']}"
        case "enum":
            return f"one of {context['expected'].replace(' or ', ', ')}"
    return None
