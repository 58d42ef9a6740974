"""The API as one callable: an API Gateway event (HTTP API, payload 2.0) in, an answer out."""

import re
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2
from pydantic import BaseModel

from stepwell_engine import limits
from stepwell_engine.api import problems, routing
from stepwell_engine.api.auth import admit
from stepwell_engine.api.bodies import json_object
from stepwell_engine.api.models import NoQuery
from stepwell_engine.api.replies import Reply
from stepwell_engine.api.routes import ROUTES
from stepwell_engine.api.routing import Route
from stepwell_engine.api.services import Services
from stepwell_engine.api.validation import checked
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.core.values.excerpt import excerpt
from stepwell_engine.errors import Problem

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


def build(services: Services) -> Handler:
    """The API over these services, for any number of threads at once."""
    own = threading.local()

    def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
        # Powertools keeps the request in the resolver, so every thread has a resolver of its own.
        resolver = getattr(own, "resolver", None)
        if resolver is None:
            resolver = own.resolver = _resolver(services)
        answer: dict[str, Any] = resolver.resolve(event, context)
        return answer

    return handle


class _Event(APIGatewayProxyEventV2):
    """The event with its path decoded, without the stage.

    In its segments slashes and percent signs stay encoded: a name with a slash is not two names.
    """

    @property
    def path(self) -> str:
        raw, stage = self.raw_path, self.request_context.stage
        if stage != "$default":
            raw = raw.removeprefix(f"/{stage}")
        return "/".join(
            unquote(one).replace("%", "%25").replace("/", "%2F") for one in raw.split("/")
        )


class _Resolver(APIGatewayHttpResolver):
    """A resolver that shares nothing with others, and whose names take any character but /."""

    def resolve(self, event: Any, context: Any) -> dict[str, Any]:
        self.current_event = _Event(event)
        self.lambda_context = context
        try:
            return self._build_response(self._resolve())
        finally:
            self.context.clear()

    @staticmethod
    def _compile_regex(rule: str, base_regex: str = "") -> re.Pattern[str]:  # noqa: ARG004
        return routing.pattern(rule)


def _resolver(services: Services) -> _Resolver:
    resolver = _Resolver(debug=False)
    for route in ROUTES:
        resolver.route(route.path, route.method)(_endpoint(resolver, route, services))

    def no_route(_: NotFoundError) -> Response[str]:
        event = resolver.current_event
        path = event.path
        allowed = routing.methods(ROUTES, path)
        return _response(problems.no_route(event.http_method, path, allowed))

    def failed(error: Exception) -> Response[str]:
        request_id = resolver.current_event.request_context.request_id
        return _response(problems.reply_to_error(error, request_id))

    resolver.not_found(no_route)
    resolver.exception_handler(Exception)(failed)
    return resolver


def _endpoint(
    resolver: _Resolver, route: Route, services: Services
) -> Callable[..., Response[str]]:
    def call(**path: str) -> Response[str]:
        names = {name: unquote(value) for name, value in path.items()}
        return _response(_serve(route, services, resolver.current_event, names))

    return call


def _serve(
    route: Route, services: Services, event: APIGatewayProxyEventV2, path: dict[str, str]
) -> Reply:
    arguments: dict[str, Any] = dict(path)
    headers = event.headers
    if route.permission is not None:
        admit(services.identity, headers.get("authorization"), route.permission, path["ref"])
    _check_path(path)
    query = checked(route.query or NoQuery, event.query_string_parameters)
    if route.query is not None:
        arguments["query"] = query
    if route.body is not None:
        body = json_object(event.body, bool(event.is_base64_encoded), headers, route.body_required)
        is_model = issubclass(route.body, BaseModel)
        arguments["body"] = checked(route.body, body) if is_model else body
    return route.endpoint(services, **arguments)


def _check_path(path: dict[str, str]) -> None:
    """Stores have keys of a limited length; they need not look for what cannot be there."""
    for name, value in path.items():
        # A receipt is as long as its queue makes it.
        if name != "receipt" and len(value) > limits.MAX_PATH_PART:
            raise Problem(
                "invalid_request",
                f"a name, id or number in the path has at most {limits.MAX_PATH_PART} characters, "
                f"but {excerpt(value)} has {len(value):,}",
            )


def _response(reply: Reply) -> Response[str]:
    if reply.body is None:
        # A body is a text, says API Gateway's format: null is for each gateway to make sense of.
        return Response(reply.status, body="", headers=reply.headers)
    text = reply.body if isinstance(reply.body, bytes) else jsonvalue.encode(reply.body)
    return Response(reply.status, reply.content_type, text.decode(), headers=reply.headers)
