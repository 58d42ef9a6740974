"""What the API shows: heads, versions, resources and messages as JSON values."""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from stepwell_engine.core import jsonvalue
from stepwell_engine.core.run import Head, Status, StepStatus
from stepwell_engine.core.validate import hide_secrets
from stepwell_engine.ports import Message, Published, Resource
from stepwell_engine.service.progress import StepRow, iso
from stepwell_engine.service.queries import RunDetail, RunRow

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


class RunStatusView(TypedDict):
    """A run and its status."""

    id: str
    status: Status


class RunItem(TypedDict):
    """A run in a list."""

    id: str
    workflow: str
    version: int
    status: Status
    cursor: Annotated[int, Field(description="The index of the current step.")]
    test: bool
    last_error: str | None
    created_at: Time
    finished_at: Time | None


class RunList(TypedDict):
    """A page of runs, newest first. A filtered page may be short: only next_cursor null ends it."""

    items: list[RunItem]
    next_cursor: str | None


class StepResult(TypedDict, total=False):
    """What a step came to: each of these is there only if there is one."""

    output: Json
    error: str
    code: str


class StepView(StepResult):
    """A step of a run."""

    key: str
    kind: str
    status: StepStatus
    attempt: int
    max_attempts: int
    started_at: Time | None
    finished_at: Time | None
    next_attempt_at: Annotated[
        Time | None, Field(description="When the next attempt is due, or a sleep or wait ends.")
    ]


class StepList(TypedDict):
    """A page of a run's steps, in definition order."""

    items: list[StepView]
    next_cursor: str | None


class CompensationView(TypedDict):
    """How far a failed run was undone."""

    state: Literal["none"]


class RunView(TypedDict):
    """A run with its first 200 steps, fewer if they are large; `next_steps_cursor`: the others."""

    id: str
    workflow: str
    version: int
    status: Status
    cursor: Annotated[int, Field(description="The index of the current step.")]
    test: bool
    idempotency_key: str | None
    input: Json
    output: Annotated[Json, Field(description="The output of the last step that produced one.")]
    compensation: CompensationView
    last_error: str | None
    reason: Annotated[str | None, Field(description="Why a live run is not moving.")]
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    steps: list[StepView]
    next_steps_cursor: str | None


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


def run_status_view(head: Head) -> RunStatusView:
    """What a start and a cancel answer."""
    return {"id": head.run_id, "status": head.status}


def run_item(row: RunRow) -> RunItem:
    """An item of the list of runs."""
    head = row.head
    return {
        "id": head.run_id,
        "workflow": head.workflow,
        "version": head.version,
        "status": row.status,
        "cursor": row.position,
        "test": head.test,
        "last_error": row.last_error,
        "created_at": iso(head.created_at),
        "finished_at": _time(head.ended_at),
    }


def run_view(detail: RunDetail) -> RunView:
    """A run in full."""
    head = detail.run.head
    return {
        "id": head.run_id,
        "workflow": head.workflow,
        "version": head.version,
        "status": detail.run.status,
        "cursor": detail.run.position,
        "test": head.test,
        "idempotency_key": head.idempotency_key,
        "input": jsonvalue.decode(detail.input),
        "output": None if detail.output is None else jsonvalue.decode(detail.output),
        "compensation": {"state": "none"},
        "last_error": detail.run.last_error,
        "reason": detail.reason,
        "created_at": iso(head.created_at),
        "started_at": _time(detail.started_at),
        "finished_at": _time(head.ended_at),
        "steps": [step_view(row) for row in detail.steps],
        "next_steps_cursor": detail.steps_cursor,
    }


def step_view(row: StepRow) -> StepView:
    """A step of a run."""
    record = row.record
    came_to: StepResult = {}
    if row.output is not None:
        came_to["output"] = jsonvalue.decode(row.output)
    if record.error is not None:
        came_to["error"] = record.error
    if record.code is not None:
        came_to["code"] = record.code
    return {
        "key": row.step.key,
        "kind": row.step.kind,
        "status": record.status,
        "attempt": record.attempt,
        "max_attempts": row.step.max_attempts,
        **came_to,
        "started_at": _time(record.started_at),
        "finished_at": _time(record.finished_at),
        "next_attempt_at": _time(record.next_at),
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


def _time(at: int | None) -> str | None:
    return None if at is None else iso(at)
