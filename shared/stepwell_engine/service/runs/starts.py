"""Starting runs."""

from dataclasses import dataclass
from typing import Protocol

from stepwell_engine import limits
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.core.values.units import ProjectRef, WorkflowName
from stepwell_engine.errors import Problem
from stepwell_engine.ports import Clock, Dispatcher, Done, Ids, Runs
from stepwell_engine.service.retry_unavailable import retry_unavailable


class EnabledVersions(Protocol):
    """Which version a start resolves to."""

    def enabled(self, project: ProjectRef, workflow: WorkflowName) -> int:
        """The highest enabled version. Problem `not_found` or `workflow_disabled`."""
        ...


@dataclass(frozen=True, slots=True)
class Started:
    """The run, and whether this call created it."""

    head: Head
    created: bool


class Starts:
    """Starts runs, at most one for an idempotency key."""

    def __init__(
        self,
        runs: Runs,
        workflows: EnabledVersions,
        dispatcher: Dispatcher,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._runs = runs
        self._workflows = workflows
        self._dispatcher = dispatcher
        self._clock = clock
        self._ids = ids

    def start(
        self,
        project: ProjectRef,
        workflow: WorkflowName,
        input: bytes,  # noqa: A002  the product's word
        idempotency_key: str | None = None,
        test: bool = False,
    ) -> Started:
        """Start a run of the highest enabled version, or find the run of the key.

        `input` is compact JSON. Problem: not_found, workflow_disabled, invalid_request,
        payload_too_large.
        """
        _check(input, idempotency_key)
        if idempotency_key is not None:
            existing = retry_unavailable(
                self._clock, lambda: self._runs.by_key(project, workflow, idempotency_key)
            )
            if existing is not None:
                return Started(existing, created=False)
        now = self._clock.now()
        inline = len(input) <= limits.INLINE_INPUT
        head = Head(
            run_id=self._ids.run_id(),
            project=project,
            workflow=workflow,
            version=retry_unavailable(
                self._clock, lambda: self._workflows.enabled(project, workflow)
            ),
            created_at=now,
            wake_at=now + limits.LEASE,
            input=input if inline else None,
            idempotency_key=idempotency_key,
            test=test,
            format=limits.BASE_RUN_FORMAT,
        )
        blobs = () if inline else (Blob("input", input),)
        written = retry_unavailable(self._clock, lambda: self._runs.create(head, blobs))
        if not isinstance(written, Done):
            if written.head is None:
                raise Problem("unavailable", "the run was not stored: try again")
            # This very id: a first try had succeeded although the store did not answer.
            if written.head.run_id != head.run_id:
                return Started(written.head, created=False)
        self._dispatcher.hint(about_run(head.run_id, project))
        return Started(head, created=True)


def _check(data: bytes, key: str | None) -> None:
    if len(data) > limits.MAX_INPUT:
        raise Problem(
            "payload_too_large",
            f"input has {len(data):,} bytes of JSON, at most {limits.MAX_INPUT:,} are allowed",
        )
    check_key(key)


def check_key(key: str | None) -> None:
    """Problem `invalid_request` for an idempotency key of a wrong length."""
    if key is not None and not 1 <= len(key) <= limits.MAX_IDEMPOTENCY_KEY:
        raise Problem(
            "invalid_request",
            f"idempotency_key has {len(key)} characters, "
            f"1 to {limits.MAX_IDEMPOTENCY_KEY} are allowed",
        )
