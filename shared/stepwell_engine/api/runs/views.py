"""What the API shows of runs, their steps and signals."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from stepwell_engine.api.models import Json, Time
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.core.run.view import Compensation, CompensationState, StepRow
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.core.values.times import iso
from stepwell_engine.service.runs.controls import Signal
from stepwell_engine.service.runs.queries import RunDetail, RunRow

Depth = Annotated[int, Field(description="How many runs are above: 0 for one without a parent.")]
Code = Annotated[
    str | None,
    Field(
        description="The stable code of what a run failed of, also where its rollback stopped; of "
        "a live run that of last_error. Null if it has none."
    ),
]


class RunStatusView(TypedDict):
    """A run and its status."""

    id: str
    status: Status


class ParentItem(TypedDict):
    """The run whose sub-workflow step started this one."""

    run_id: str


class ParentView(ParentItem):
    """The run whose sub-workflow step started this one, and its workflow."""

    workflow: Annotated[str | None, Field(description="Null if that run is gone.")]


class SignalView(TypedDict):
    """A signal as it was delivered first."""

    id: str
    run_id: str
    signal: str
    created_at: Time


class RunItem(TypedDict):
    """A run in a list."""

    id: str
    workflow: str
    version: int
    status: Status
    cursor: Annotated[int, Field(description="The index of the current step.")]
    test: bool
    parent: ParentItem | None
    depth: Depth
    last_error: str | None
    code: Code
    created_at: Time
    finished_at: Time | None


class RunList(TypedDict):
    """A page of runs, newest first. A filtered page may be short: only next_cursor null ends it."""

    items: list[RunItem]
    next_cursor: str | None


class StepResult(TypedDict, total=False):
    """What a step is and came to: each of these is there only if there is one."""

    output: Annotated[Json, Field(description="Of a sub-workflow step: the id of its child run.")]
    child_output: Annotated[Json, Field(description="The output of the child run.")]
    error: str
    code: str
    parent_step_id: Annotated[str, Field(description="The key of the fan-out of this child.")]
    compensating: Annotated[Literal[True], Field(description="This compensates a step.")]


class StepView(StepResult):
    """A step of a run."""

    key: str
    kind: str
    status: StepStatus
    attempt: int
    max_attempts: Annotated[int, Field(description="1 for a kind that takes no such field.")]
    started_at: Annotated[
        Time | None,
        Field(
            description="When its first attempt began, as far as is known: null until the outcome "
            "of an attempt is recorded, and of an attempt whose worker was lost."
        ),
    ]
    finished_at: Time | None
    next_attempt_at: Annotated[
        Time | None, Field(description="When the next attempt is due, or a sleep or wait ends.")
    ]


class StepList(TypedDict):
    """A page of a run's steps, in definition order."""

    items: list[StepView]
    next_cursor: str | None


class CompensationView(TypedDict):
    """How far a failed run was compensated.

    `failed`: a compensation failed for good. `incomplete`: the run was cancelled before the end.
    """

    state: CompensationState
    step: NotRequired[
        Annotated[str, Field(description="The key of the step at which compensating stands.")]
    ]


class RunView(TypedDict):
    """A run with its first 200 steps, fewer if they are large; `next_steps_cursor`: the others."""

    id: str
    workflow: str
    version: int
    status: Status
    cursor: Annotated[int, Field(description="The index of the current step.")]
    test: bool
    idempotency_key: str | None
    parent: ParentView | None
    depth: Depth
    input: Json
    output: Annotated[Json, Field(description="The output of the last step that produced one.")]
    compensation: CompensationView
    last_error: str | None
    code: Code
    reason: Annotated[str | None, Field(description="Why a live run is not moving.")]
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    steps: list[StepView]
    next_steps_cursor: str | None


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
        "parent": None if head.parent is None else {"run_id": head.parent},
        "depth": head.depth,
        "last_error": row.last_error,
        "code": row.code,
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
        "parent": _parent(detail),
        "depth": head.depth,
        "input": jsonvalue.decode(detail.input),
        "output": None if detail.output is None else jsonvalue.decode(detail.output),
        "compensation": compensation_view(detail.compensation),
        "last_error": detail.run.last_error,
        "code": detail.run.code,
        "reason": detail.reason,
        "created_at": iso(head.created_at),
        "started_at": _time(detail.started_at),
        "finished_at": _time(head.ended_at),
        "steps": [step_view(row) for row in detail.steps],
        "next_steps_cursor": detail.steps_cursor,
    }


def compensation_view(compensation: Compensation) -> CompensationView:
    """How far a failed run was compensated."""
    view: CompensationView = {"state": compensation.state}
    if compensation.step is not None:
        view["step"] = compensation.step
    return view


def step_view(row: StepRow) -> StepView:
    """A step of a run."""
    record = row.record
    came_to: StepResult = {}
    output = None if row.output is None else jsonvalue.decode(row.output)
    if row.starts_run:
        if row.child is not None:
            came_to["output"] = row.child
        if row.output is not None:
            came_to["child_output"] = output
    elif row.output is not None:
        came_to["output"] = output
    if record.error is not None:
        came_to["error"] = record.error
    if record.code is not None:
        came_to["code"] = record.code
    if row.parent is not None:
        came_to["parent_step_id"] = row.parent
    if row.compensating:
        came_to["compensating"] = True
    return {
        "key": row.key,
        "kind": row.kind,
        "status": record.status,
        "attempt": record.attempt,
        "max_attempts": row.max_attempts,
        **came_to,
        "started_at": _time(record.started_at),
        "finished_at": _time(record.finished_at),
        "next_attempt_at": _time(record.next_at),
    }


def signal_view(signal: Signal) -> SignalView:
    """What a signal's delivery answers."""
    return {
        "id": signal.id,
        "run_id": signal.run_id,
        "signal": signal.name,
        "created_at": iso(signal.created_at),
    }


def _parent(detail: RunDetail) -> ParentView | None:
    parent = detail.run.head.parent
    return None if parent is None else {"run_id": parent, "workflow": detail.parent_workflow}


def _time(at: int | None) -> str | None:
    return None if at is None else iso(at)
