"""What the API shows of workflows and their versions."""

from typing import Literal

from typing_extensions import TypedDict

from stepwell_engine.api.models import Json, Time
from stepwell_engine.core.declared.validate import hide_secrets
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.core.values.times import iso
from stepwell_engine.ports import Published


class PublishedView(TypedDict):
    """A version that was published."""

    name: str
    version: int
    enabled: bool


class ValidView(TypedDict):
    """A definition that could be published."""

    name: str
    valid: Literal[True]
    step_count: int


class WorkflowItem(TypedDict):
    """The newest version of a workflow in a list."""

    name: str
    version: int
    enabled: bool
    step_count: int
    created_at: Time


class WorkflowView(TypedDict):
    """A version with its steps; `secret_set: true` stands for a secret."""

    name: str
    version: int
    enabled: bool
    created_at: Time
    steps: list[dict[str, Json]]


class WorkflowList(TypedDict):
    """A page of workflows."""

    items: list[WorkflowItem]
    next_cursor: str | None


def published_view(published: Published) -> PublishedView:
    """What a PUT answers."""
    return {
        "name": published.workflow,
        "version": published.version,
        "enabled": published.enabled,
    }


def workflow_item(published: Published) -> WorkflowItem:
    """An item of the list of workflows."""
    return {
        **published_view(published),
        "step_count": len(jsonvalue.decode(published.document)["steps"]),
        "created_at": iso(published.created_at),
    }


def workflow_view(published: Published) -> WorkflowView:
    """A version, its secrets hidden."""
    document = hide_secrets(jsonvalue.decode(published.document))
    return {
        **published_view(published),
        "created_at": iso(published.created_at),
        "steps": document["steps"],
    }
