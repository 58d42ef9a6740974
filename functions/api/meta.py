"""Whether the API is there, for anybody who asks."""

from typing import Final

from functions.api.routing import Routes
from stepwell_engine.edge import views
from stepwell_engine.edge.replies import Reply
from stepwell_engine.edge.services import Services

ROUTES: Final = Routes("meta", "/v1")


@ROUTES.add("GET", "/health", None, {200: views.HealthView})
def get_health(services: Services) -> Reply:  # noqa: ARG001  endpoints have one form
    """Tell that the API answers."""
    return Reply(200, {"status": "ok"})
