"""Whether the API is there, for anybody who asks."""

from typing import Final

from stepwell_engine.api.meta import views
from stepwell_engine.api.replies import Reply
from stepwell_engine.api.routing import Routes
from stepwell_engine.api.services import Services

ROUTES: Final = Routes("meta", "/v1")


@ROUTES.add("GET", "/health", None, {200: views.HealthView})
def get_health(services: Services) -> Reply:
    """Tell that the API answers, and whether the store takes what workers beside it write.

    200 in either case: whoever ended a process that waits for its store would lose the outcomes
    that it has in hand.
    """
    reason = services.refusals.latest()
    if reason is None:
        return Reply(200, {"status": "ok"})
    return Reply(200, {"status": "degraded", "reason": reason})
