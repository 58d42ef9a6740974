"""All routes of the API, in the order in which they are documented, and the one that shows them."""

from functools import cache
from typing import Any, Final

from functions.api import messages, meta, resources, runs, workflows
from functions.api.routing import Routes
from stepwell_engine.edge.replies import Reply
from stepwell_engine.edge.services import Services

_SHOWN: Final = Routes("meta", "/v1")


@_SHOWN.add("GET", "/openapi.json", None, {200: dict[str, Any]})
def get_openapi(services: Services) -> Reply:  # noqa: ARG001  endpoints have one form
    """Show this document."""
    return Reply(200, _document())


@cache
def _document() -> bytes:
    # Imported on first use: generating the document loads much that no other route needs.
    from functions.api import openapi  # noqa: PLC0415

    return openapi.document(ROUTES)


ROUTES: Final = (
    *workflows.ROUTES,
    *runs.ROUTES,
    *resources.ROUTES,
    *messages.ROUTES,
    *meta.ROUTES,
    *_SHOWN,
)
