"""A route: an endpoint with what it asks of its caller and what it answers.

An endpoint is a function of the services, of the parts of its path, and of `body` and `query` if
it has parameters of these names; their annotations are the models that they are checked against.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from inspect import get_annotations
from typing import Any, TypeVar

from stepwell_engine.api.replies import Reply
from stepwell_engine.service.projects.identity import Permission

Endpoint = Callable[..., Reply]
E = TypeVar("E", bound=Endpoint)


@dataclass(frozen=True)
class Route:
    """`path` has its variable parts as `<name>`. `permission` None: anybody may call it.

    `answers` maps statuses to the shape of their body (None: no body); `problems` are the codes
    of its own, beside those that every route may answer.
    """

    method: str
    path: str
    tag: str
    permission: Permission | None
    answers: Mapping[int, Any]
    problems: tuple[str, ...]
    endpoint: Endpoint
    body_required: bool

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Matches the paths of this route, whole."""
        return pattern(self.path)

    @cached_property
    def body(self) -> Any:
        """The model of the body, None if the route takes none."""
        return get_annotations(self.endpoint).get("body")

    @cached_property
    def query(self) -> Any:
        """The model of the query string, None if the route reads none."""
        return get_annotations(self.endpoint).get("query")


class Routes(list[Route]):
    """The routes of one module, in the order in which they are documented."""

    def __init__(self, tag: str, prefix: str) -> None:
        super().__init__()
        self._tag = tag
        self._prefix = prefix

    def add(
        self,
        method: str,
        path: str,
        permission: Permission | None,
        answers: Mapping[int, Any],
        problems: tuple[str, ...] = (),
        body_required: bool = True,
    ) -> Callable[[E], E]:
        """Decorate an endpoint."""

        def register(endpoint: E) -> E:
            self.append(
                Route(
                    method,
                    self._prefix + path,
                    self._tag,
                    permission,
                    answers,
                    problems,
                    endpoint,
                    body_required,
                )
            )
            return endpoint

        return register


def methods(routes: Iterable[Route], path: str) -> list[str]:
    """What the path takes. A fixed word goes before a name that it could be, too."""
    found = [route for route in routes if route.pattern.match(path)]
    fewest = min((route.pattern.groups for route in found), default=0)
    return sorted({route.method for route in found if route.pattern.groups == fewest})


def pattern(path: str) -> re.Pattern[str]:
    """`<name>` is one non-empty segment of a path."""
    parts = re.split(r"(<\w+>)", path)
    return re.compile(
        "".join(f"(?P{part}[^/]+)" if part.startswith("<") else re.escape(part) for part in parts)
        + r"\Z"
    )
