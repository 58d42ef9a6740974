"""Answers the API: the handler of the function `api`."""

from functools import cache
from typing import Any

from stepwell_engine.api.app import Handler, build
from stepwell_engine.wiring.invocation import invocation, started


@cache
def _api() -> Handler:
    home, _ = started()
    return build(home.engine.services)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """An event of the HTTP API in, its answer out."""
    with invocation(context):
        return _api()(event, context)
