"""Routes of runs."""

from typing import Final

from stepwell_engine.api.models import NoBody, Page
from stepwell_engine.api.replies import Reply
from stepwell_engine.api.routing import Routes
from stepwell_engine.api.runs import views
from stepwell_engine.api.runs.models import Cancel, RunPage, SendSignal, StartRun, Wait
from stepwell_engine.api.services import Services
from stepwell_engine.api.times import instant
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.service.projects.identity import Permission
from stepwell_engine.service.runs.queries import Span

ROUTES: Final = Routes("runs", "/v1/projects/<ref>/workflows/<name>/runs")


@ROUTES.add(
    "POST",
    "",
    Permission.RUN,
    {201: views.RunStatusView, 200: views.RunStatusView},
    ("workflow_disabled",),
    body_required=False,
)
def start_run(services: Services, ref: str, name: str, body: StartRun) -> Reply:
    """Start a run of a workflow's highest enabled version.

    A start with an idempotency key that was used before answers 200 with the run of that key;
    the new input is ignored.
    """
    started = services.starts.start(
        ref, name, jsonvalue.encode(body.input), body.idempotency_key, body.test
    )
    return Reply(201 if started.created else 200, views.run_status_view(started.head))


@ROUTES.add("GET", "", Permission.VIEW, {200: views.RunList})
def list_runs(services: Services, ref: str, name: str, query: RunPage) -> Reply:
    """List the runs of a workflow, newest first."""
    created = Span(instant("from", query.from_), instant("to", query.to))
    found, cursor = services.queries.list(
        ref, name, query.cursor, query.limit, query.status, created
    )
    return Reply(200, {"items": [views.run_item(row) for row in found], "next_cursor": cursor})


@ROUTES.add("GET", "/<run_id>", Permission.VIEW, {200: views.RunView})
def get_run(services: Services, ref: str, name: str, run_id: str, query: Wait) -> Reply:
    """Show a run; with `?wait=` when it has ended, or the seconds are over."""
    return Reply(200, views.run_view(services.queries.detail(ref, name, run_id, query.wait)))


@ROUTES.add("GET", "/<run_id>/steps", Permission.VIEW, {200: views.StepList})
def list_run_steps(services: Services, ref: str, name: str, run_id: str, query: Page) -> Reply:
    """List the steps of a run, in definition order."""
    found, cursor = services.queries.steps(ref, name, run_id, query.cursor, query.limit)
    return Reply(200, {"items": [views.step_view(row) for row in found], "next_cursor": cursor})


@ROUTES.add(
    "POST",
    "/<run_id>/cancel",
    Permission.RUN,
    {200: views.RunStatusView},
    ("run_finished",),
    body_required=False,
)
def cancel_run(
    services: Services,
    ref: str,
    name: str,
    run_id: str,
    query: Cancel,
    body: NoBody,  # noqa: ARG001  checked to be empty
) -> Reply:
    """Cancel a live run. A step in flight is recorded; nothing is rolled back.

    A child run that it waits for goes on, unless `?cascade=true` asks to cancel it too.
    """
    cancelled = services.controls.cancel(ref, name, run_id, query.cascade)
    return Reply(200, views.run_status_view(cancelled))


@ROUTES.add(
    "POST",
    "/<run_id>/signals",
    Permission.RUN,
    {201: views.SignalView},
    ("run_finished", "too_many_signals"),
)
def send_signal(services: Services, ref: str, name: str, run_id: str, body: SendSignal) -> Reply:
    """Send a signal to a live run.

    It is kept until a step of the run takes it, also if none waits for it yet.
    """
    sent = services.controls.signal(
        ref, name, run_id, body.signal, jsonvalue.encode(body.payload), body.idempotency_key
    )
    return Reply(201, views.signal_view(sent))
