"""The OpenAPI document, generated from the routes by a resolver that serves nothing."""

import inspect
import json
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.event_handler.openapi.models import HTTPBearer, Tag
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query

from stepwell_engine.api.problems import ProblemView
from stepwell_engine.api.replies import JSON, PROBLEM_JSON
from stepwell_engine.api.routing import Route
from stepwell_engine.api.workflows import step_schema
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.errors import PROBLEM_STATUS

_TAGS: Final = {
    "workflows": "Declared workflows and their versions.",
    "runs": "Executions of a workflow.",
    "resources": "What steps use: queues, functions, the database.",
    "messages": "The messages of a project's queues.",
    "meta": "The API itself. No token is needed.",
}
_PATH: Final = {
    "ref": "The project.",
    "name": "The name.",
    "number": "The number of the version.",
    "run_id": "The id of the run.",
    "receipt": "The receipt of the message.",
}
_ANSWERS: Final = {200: "Done.", 201: "Created.", 204: "Done; there is no body."}
_VERSION: Final = "1"
_SCHEME: Final = "bearer"
# The resolver documents answers of its own validation, which is not in use.
_FOREIGN: Final = ("HTTPValidationError", "ValidationError", "ResponseValidationError")


def document(routes: Iterable[Route]) -> bytes:
    """The document of these routes as compact JSON."""
    resolver = APIGatewayHttpResolver(debug=False)
    for route in routes:
        summary, _, description = (inspect.getdoc(route.endpoint) or "").partition("\n")
        resolver.route(
            route.path,
            route.method,
            summary=summary.rstrip("."),
            description=" ".join(description.split()) or None,
            responses=_responses(route),
            tags=[route.tag],
            operation_id=_camel_case(route.endpoint.__name__),
            openapi_extensions={"security": []} if route.permission is None else None,
        )(_described(route))
    text = resolver.get_openapi_json_schema(
        title="Stepwell",
        version=_VERSION,
        summary="Durable workflows in your own AWS account, or on one machine.",
        tags=[Tag(name=name, description=text) for name, text in _TAGS.items()],
        security_schemes={_SCHEME: HTTPBearer(description="A member's session token, swt_….")},
        security=[{_SCHEME: []}],
    )
    shown = json.loads(text)
    for name in _FOREIGN:
        del shown["components"]["schemas"][name]
    shown["components"]["schemas"] |= step_schema.components()
    return jsonvalue.encode(shown)


def _described(route: Route) -> Any:
    """A function with the signature from which the resolver reads the parameters."""

    def endpoint() -> None:
        """Never called."""

    endpoint.__name__ = route.endpoint.__name__
    endpoint.__signature__ = inspect.Signature(list(_parameters(route)))  # type: ignore[attr-defined]
    return endpoint


def _parameters(route: Route) -> Iterator[inspect.Parameter]:
    for name in route.pattern.groupindex:
        yield _parameter(name, Annotated[str, Path(description=_PATH[name])])
    if route.query is not None:
        for name, field in route.query.model_fields.items():
            shown = Query(description=field.description, alias=field.alias)
            yield _parameter(
                name, Annotated[field.annotation, *field.metadata, shown], field.default
            )
    if route.body is not None:
        required = inspect.Parameter.empty if route.body_required else None
        yield _parameter("body", Annotated[route.body, Body()], required)


def _parameter(
    name: str, annotation: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


def _responses(route: Route) -> Any:
    answers: dict[int, Any] = {}
    for status, shape in route.answers.items():
        # An empty content says that there is no body; without it the resolver assumes JSON.
        content = {} if shape is None else {JSON: {"model": shape}}
        answers[status] = {"description": _ANSWERS[status], "content": content}
    for status, codes in sorted(_problems(route).items()):
        answers[status] = {
            "description": f"Problem: {', '.join(codes)}.",
            "content": {PROBLEM_JSON: {"model": ProblemView}},
        }
    return answers


def _problems(route: Route) -> dict[int, list[str]]:
    """The codes that a route may answer, by status."""
    codes = [*route.problems, "internal", "invalid_request"]
    if route.permission is not None:
        codes += ["unauthenticated", "forbidden", "not_found", "unavailable"]
    if route.body is not None:
        codes += ["payload_too_large", "unsupported_media_type"]
    by_status: dict[int, list[str]] = {}
    for code in sorted(set(codes)):
        by_status.setdefault(PROBLEM_STATUS[code], []).append(code)
    return by_status


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)
