"""What the API shows: versions, resources and messages as JSON values; runs are in run_views."""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from stepwell_engine.core.declared.validate import hide_secrets
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.ports import Message, Published, Resource
from stepwell_engine.service.runs.progress import iso

Json = Any
Time = Annotated[
    str,
    Field(
        description="ISO 8601 in UTC, to the millisecond.", examples=["2026-01-31T12:00:00.000Z"]
    ),
]


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


class QueueView(TypedDict):
    """A queue."""

    name: str
    visibility_timeout: int
    max_receives: int
    created_at: Time


class QueueList(TypedDict):
    """A page of queues."""

    items: list[QueueView]
    next_cursor: str | None


_Lambda = TypedDict("_Lambda", {"lambda": NotRequired[str]})


class FunctionView(_Lambda):
    """A function: one of url, lambda, command, python."""

    name: str
    url: NotRequired[str]
    command: NotRequired[list[str]]
    python: NotRequired[str]
    created_at: Time


class FunctionList(TypedDict):
    """A page of functions."""

    items: list[FunctionView]
    next_cursor: str | None


class DatabaseView(TypedDict):
    """The project's database. `secret_set: true` stands for its DSN."""

    embedded: bool
    cluster: NotRequired[str]
    secret: NotRequired[str]
    database: NotRequired[str]
    secret_set: bool
    created_at: Time


class SentView(TypedDict):
    """A message that was sent."""

    id: int | str


class MessageView(TypedDict):
    """A message. `receipt`, which deletes it, is there if it was received."""

    id: int | str
    body: Json
    sent_at: Time
    visible_at: Time
    receives: int
    receipt: NotRequired[str]


class MessageList(TypedDict):
    """A page of messages."""

    items: list[MessageView]
    next_cursor: str | None


class ReceivedView(TypedDict):
    """Messages that were received."""

    items: list[MessageView]


class HealthView(TypedDict):
    """The API answers."""

    status: Literal["ok"]


class ProblemView(TypedDict):
    """An error (RFC 9457). `code` is stable; some codes have further members."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: NotRequired[list[dict[str, str]]]
    violations: NotRequired[list[dict[str, str | None]]]


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


def resource_view(resource: Resource) -> Any:
    """A queue or a function: its name and its settings."""
    return {
        "name": resource.name,
        **jsonvalue.decode(resource.config),
        "created_at": iso(resource.created_at),
    }


def database_view(resource: Resource) -> DatabaseView:
    """The database; never its DSN."""
    view: Any = {
        **jsonvalue.decode(resource.config),
        "secret_set": resource.sealed is not None,
        "created_at": iso(resource.created_at),
    }
    shown: DatabaseView = view
    return shown


def message_view(message: Message) -> MessageView:
    """A message; what is not JSON is shown as text."""
    view: MessageView = {
        "id": message.id,
        "body": _body(message.body),
        "sent_at": iso(message.sent_at),
        "visible_at": iso(message.visible_at),
        "receives": message.receives,
    }
    if message.receipt:
        view["receipt"] = message.receipt
    return view


def _body(data: bytes) -> Any:
    try:
        return jsonvalue.decode(data)
    except ValueError:
        return data.decode(errors="replace")
