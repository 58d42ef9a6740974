"""Errors as RFC 9457 problem documents."""

import logging
from typing import Any, Final, NotRequired

from typing_extensions import TypedDict

from stepwell_engine.api.replies import PROBLEM_JSON, Reply
from stepwell_engine.core.values.excerpt import excerpt
from stepwell_engine.errors import PROBLEM_STATUS, NewerFormat, Problem, StoreError, Unstorable

log = logging.getLogger(__name__)

_RETRY_AFTER: Final = "1"  # seconds


class ProblemView(TypedDict):
    """An error (RFC 9457). `code` is stable; some codes have further members."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: NotRequired[list[dict[str, str]]]
    violations: NotRequired[list[dict[str, str | None]]]


def reply(problem: Problem, **headers: str) -> Reply:
    """The problem document of a refused request."""
    if problem.code == "unauthenticated":
        headers["WWW-Authenticate"] = "Bearer"
    if problem.code == "unavailable":
        headers["Retry-After"] = _RETRY_AFTER
    return Reply(
        status=problem.status,
        body={**_document(problem.code, problem.detail), **problem.extra},
        headers=headers,
        content_type=PROBLEM_JSON,
    )


def reply_to_error(error: Exception, request_id: str) -> Reply:
    """The problem document of whatever was raised; what was not foreseen is logged, not shown."""
    match error:
        case Problem():
            return reply(error)
        case NewerFormat():
            log.error("request %s: %s", request_id, error)
            return reply(Problem("unavailable", str(error)))
        case StoreError() if not isinstance(error, Unstorable):
            log.warning("request %s: the store refuses: %s", request_id, error)
            text = f"the store refuses: {error.reason}. The request may or may not have had its "
            return reply(Problem("unavailable", f"{text}effect: try again"))
        case _:
            log.error("request %s failed", request_id, exc_info=error)
            text = "the request failed for a reason that was not foreseen; it has been logged"
            return reply(Problem("internal", text, request_id=request_id))


def no_route(method: str, path: str, allowed: list[str]) -> Reply:
    """The answer where no route matches; `allowed` are the methods that the path takes."""
    if allowed:
        methods = ", ".join(allowed)
        text = f"{method} is not a method of this path, only {methods}"
        return reply(Problem("method_not_allowed", text), Allow=methods)
    text = f"there is nothing at {excerpt(path)}: the routes are listed at /v1/openapi.json"
    return reply(Problem("not_found", text))


def title(code: str) -> str:
    """The title of a code: the same for every occurrence."""
    return code.replace("_", " ").capitalize()


def _document(code: str, detail: str) -> dict[str, Any]:
    return {
        "type": f"urn:stepwell:problem:{code}",
        "title": title(code),
        "status": PROBLEM_STATUS[code],
        "detail": detail,
        "code": code,
    }
