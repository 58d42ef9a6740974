"""All routes of the API, in the order in which they are documented, and the one that shows them."""

from functools import cache
from typing import Any, Final

from stepwell_engine.api.messages import routes as messages
from stepwell_engine.api.meta import routes as meta
from stepwell_engine.api.replies import Reply
from stepwell_engine.api.resources import routes as resources
from stepwell_engine.api.routing import Routes
from stepwell_engine.api.runs import routes as runs
from stepwell_engine.api.services import Services
from stepwell_engine.api.workflows import routes as workflows

_SHOWN: Final = Routes("meta", "/v1")


@_SHOWN.add("GET", "/openapi.json", None, {200: dict[str, Any]})
def get_openapi(services: Services) -> Reply:  # noqa: ARG001  endpoints have one form
    """Show this document."""
    return Reply(200, _document())


@cache
def _document() -> bytes:
    # Imported on first use: generating the document loads much that no other route needs.
    from stepwell_engine.api import openapi  # noqa: PLC0415

    return openapi.document(ROUTES)


ROUTES: Final = (
    *workflows.ROUTES,
    *runs.ROUTES,
    *resources.ROUTES,
    *messages.ROUTES,
    *meta.ROUTES,
    *_SHOWN,
)
