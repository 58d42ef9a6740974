"""Routes about the API itself, open to anybody."""

from functools import cache
from typing import Any, Final

from functions.api.routing import Routes
from stepwell_engine.edge import views
from stepwell_engine.edge.replies import Reply
from stepwell_engine.edge.services import Services

ROUTES: Final = Routes("meta", "/v1")


@ROUTES.add("GET", "/health", None, {200: views.HealthView})
def get_health(services: Services) -> Reply:  # noqa: ARG001  endpoints have one form
    """Tell that the API answers."""
    return Reply(200, {"status": "ok"})


@ROUTES.add("GET", "/openapi.json", None, {200: dict[str, Any]})
def get_openapi(services: Services) -> Reply:  # noqa: ARG001  endpoints have one form
    """Show this document."""
    return Reply(200, _document())


@cache
def _document() -> bytes:
    # Imported on first use: generating the document loads much that no other route needs.
    from functions.api import openapi  # noqa: PLC0415

    return openapi.document()
