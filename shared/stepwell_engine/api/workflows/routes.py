"""Routes of declared workflows."""

import re
from typing import Final

from stepwell_engine.api.models import Page
from stepwell_engine.api.replies import Reply
from stepwell_engine.api.routing import Routes
from stepwell_engine.api.services import Services
from stepwell_engine.api.workflows import views
from stepwell_engine.api.workflows.models import DefinitionBody, Publish, SetEnabled
from stepwell_engine.core.values.excerpt import excerpt
from stepwell_engine.errors import Problem
from stepwell_engine.service.projects.identity import Permission

_VERSION: Final = re.compile(r"[1-9][0-9]{0,9}")
_LARGEST_VERSION: Final = 2**31 - 1

ROUTES: Final = Routes("workflows", "/v1/projects/<ref>/workflows")


@ROUTES.add("GET", "", Permission.VIEW, {200: views.WorkflowList})
def list_workflows(services: Services, ref: str, query: Page) -> Reply:
    """List the workflows of a project, by name, each in its newest version."""
    found, cursor = services.workflows.list(ref, query.cursor, query.limit)
    items = [views.workflow_item(one) for one in found]
    return Reply(200, {"items": items, "next_cursor": cursor})


@ROUTES.add(
    "PUT",
    "/<name>",
    Permission.MANAGE,
    {201: views.PublishedView, 200: views.ValidView},
    ("invalid_definition",),
)
def publish_workflow(
    services: Services, ref: str, name: str, query: Publish, body: DefinitionBody
) -> Reply:
    """Publish the next version of a workflow.

    With `?validate=true` the definition is only checked: the answer is then a 200.
    """
    if query.validate_only:
        services.workflows.validate_only(ref, name, body)
        return Reply(200, {"name": name, "valid": True, "step_count": len(body["steps"])})
    return Reply(201, views.published_view(services.workflows.publish(ref, name, body)))


@ROUTES.add("GET", "/<name>", Permission.VIEW, {200: views.WorkflowView})
def get_workflow(services: Services, ref: str, name: str) -> Reply:
    """Show the newest version of a workflow with its steps."""
    return Reply(200, views.workflow_view(services.workflows.newest(ref, name)))


@ROUTES.add("PATCH", "/<name>", Permission.MANAGE, {204: None})
def set_workflow_enabled(services: Services, ref: str, name: str, body: SetEnabled) -> Reply:
    """Enable or disable every version of a workflow. Runs in progress go on."""
    services.workflows.set_enabled(ref, name, body.enabled)
    return Reply(204)


@ROUTES.add("GET", "/<name>/versions/<number>", Permission.VIEW, {200: views.WorkflowView})
def get_workflow_version(services: Services, ref: str, name: str, number: str) -> Reply:
    """Show one version of a workflow."""
    if _VERSION.fullmatch(number) is None or int(number) > _LARGEST_VERSION:
        raise Problem(
            "not_found",
            f"there is no version {excerpt(number)} of a workflow {excerpt(name)}: versions are "
            "1, 2, 3 and so on, without a sign or leading zeros",
        )
    return Reply(200, views.workflow_view(services.workflows.version(ref, name, int(number))))
