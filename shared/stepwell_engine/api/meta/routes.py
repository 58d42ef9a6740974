"""Whether the API is there, for anybody who asks."""

from typing import Final

from stepwell_engine.api.meta import views
from stepwell_engine.api.replies import Reply
from stepwell_engine.api.routing import Routes
from stepwell_engine.api.services import Services

ROUTES: Final = Routes("meta", "/v1")


@ROUTES.add("GET", "/health", None, {200: views.HealthView})
def get_health(services: Services) -> Reply:  # noqa: ARG001  endpoints have one form
    """Tell that the API answers."""
    return Reply(200, {"status": "ok"})
