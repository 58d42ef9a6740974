"""All routes of the API, in the order in which they are documented."""

from typing import Final

from functions.api import messages, meta, resources, runs, workflows

ROUTES: Final = (
    *workflows.ROUTES,
    *runs.ROUTES,
    *resources.ROUTES,
    *messages.ROUTES,
    *meta.ROUTES,
)
