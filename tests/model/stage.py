"""The engine itself, playing a scenario of the model in memory and in simulated time."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import pytest

from stepwell_engine import limits
from stepwell_engine.adapters.memory.runs import MemoryRuns
from stepwell_engine.adapters.memory.versions import MemoryVersions
from stepwell_engine.core.declared.kinds import ACTION_KINDS
from stepwell_engine.core.run.attempt import Attempt, Failed, Outcome, Succeeded
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.keys import UNNAMED
from stepwell_engine.core.run.view import StepRow
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.core.values.subject import Subject
from stepwell_engine.errors import Problem
from stepwell_engine.ports import Done, StepRunner, Written
from stepwell_engine.service.projects.definitions import Workflows
from stepwell_engine.service.runs.controls import Controls
from stepwell_engine.service.runs.queries import Queries
from stepwell_engine.service.runs.run_reader import journal_of
from stepwell_engine.service.runs.starts import Starts
from stepwell_engine.service.runs.store_refusals import StoreRefusals
from stepwell_engine.service.worker.advance import Advance
from tests.model.story import Bounds, Event, History, Path, Row, Scenario
from tests.model.timeline import ATTEMPT, EPOCH, WORKER, Order, TaskGroups, Timeline

PROJECT: Final = "demo"
NO_RUN: Final[Path] = (("there is no such run", 0),)
# Small, so that a small run has outputs in blobs, full journals, and all limits within reach.
SMALL: Final = {
    "INLINE_OUTPUT": 40,
    "INLINE_INPUT": 20,
    "INLINE_MESSAGE": 60,
    "COMPRESS_ABOVE": 400,
    "PAGE_ABOVE": 300,
    "PAGES_OF_INDEX": 2,
}


class Stage:
    """The services over the memory adapters, and what becomes of a scenario's runs."""

    def __init__(self, scenario: Scenario, budget: int) -> None:
        """`budget` in ms: how long a worker stays with a run."""
        self.scenario = scenario
        self.paths: dict[str, Path] = {}
        self.attempts: dict[str, list[tuple[int, str, int]]] = {}
        self.time = Timeline()
        self.runs = NotedRuns(self)
        self._budget = budget
        self._ids = 0
        self._planned: set[tuple[str, int]] = set()  # visits, which would double one another
        versions = MemoryVersions()
        workflows = Workflows(versions, self, self.time)
        for name, workflow in scenario.workflows.items():
            if workflow.state == "unreadable":
                versions.publish(PROJECT, name, b'{"steps": 1}', True, EPOCH)
                continue
            published = workflows.publish(PROJECT, name, workflow.document)
            assert published.version == 1
            if workflow.state == "disabled":
                workflows.set_enabled(PROJECT, name, False)
        runners: dict[str, StepRunner] = dict.fromkeys(ACTION_KINDS, self)
        task_groups = TaskGroups(self.time)
        self._advance = Advance(self.runs, workflows, runners, task_groups, self, self.time, self)
        self._starts = Starts(self.runs, workflows, self, self.time, self)
        self._controls = Controls(self.runs, workflows, self, self.time, self)
        self._queries = Queries(self.runs, workflows, self.time, StoreRefusals())

    def play(self) -> dict[Path, History]:
        """What a reader sees of every run in the end."""
        for event in self.scenario.events:
            # A depth above all others: before whatever else happens then.
            self.time.plan(EPOCH + event.at, (-99, ATTEMPT), partial(self._happen, event))
        self._starts.start(PROJECT, self.scenario.root, b"{}")
        self.time.run()
        return {path: self._seen(run_id) for run_id, path in self.paths.items()}

    # --- ports --------------------------------------------------------------------------------

    def run_id(self) -> str:
        return self.token()

    def token(self) -> str:
        self._ids += 1
        return f"id-{self._ids:06}"

    def seal(self, plain: str, project: str) -> str:
        return plain

    def open(self, sealed: str, project: str, within: int | None = None) -> str:
        return sealed

    def hint(self, subject: Subject, delay: int = 0, *, alone: bool = False) -> None:
        assert 0 <= delay <= limits.MAX_HINT_DELAY
        self._visit(subject.id, self.time.at + delay)

    def run(self, attempt: Attempt) -> Outcome:
        assert attempt.idempotency_key == f"{attempt.run_id}:{attempt.step}"
        path = self.paths[attempt.run_id]
        self.attempts[attempt.run_id].append((self.time.at - EPOCH, attempt.step, attempt.number))
        start_number = path[-1][1] if path else 1
        result = self.scenario.script(attempt.workflow, start_number, attempt.step, attempt.number)
        assert result.takes <= attempt.timeout
        if result.takes:
            self.time.pause(self.time.at + result.takes, (-len(path), ATTEMPT))
        if result.error is None:
            return Succeeded(None if result.output is None else result.output.encode())
        return Failed(result.error, result.code, not result.final, result.retry_after or None)

    # --- workers and users --------------------------------------------------------------------

    def _visit(self, run_id: str, at: int) -> None:
        if (run_id, at) not in self._planned:
            self._planned.add((run_id, at))
            self.time.spawn(at, self._order(run_id), partial(self._work, run_id))

    def _work(self, run_id: str) -> None:
        self._planned.discard((run_id, self.time.at))
        self._advance.run(run_id, PROJECT, self._budget)
        head = self.head(run_id)
        # The tick, which knows the truth only.
        if head.wake_at is not None and head.lease_token is None and head.wake_at > self.time.at:
            self._visit(run_id, head.wake_at)

    def _order(self, run_id: str) -> Order:
        return -len(self.paths[run_id]), WORKER

    def _happen(self, event: Event) -> None:
        for run_id, path in list(self.paths.items()):
            workflow = self.head(run_id).workflow
            detail = self._queries.detail(PROJECT, workflow, run_id)  # readable at any time
            assert (detail.reason is None) is not detail.run.head.live
            if path != event.path:
                continue
            live = self.head(run_id).live
            try:
                self._do(event, workflow, run_id)
            except Problem as problem:
                if live or problem.code != "run_finished":
                    raise

    def _do(self, event: Event, workflow: str, run_id: str) -> None:
        if event.signal is None:
            self._controls.cancel(PROJECT, workflow, run_id, event.cascade)
        else:
            payload = event.payload.encode()
            self._controls.signal(PROJECT, workflow, run_id, event.signal, payload, event.key)

    def head(self, run_id: str) -> Head:
        head = self.runs.get(run_id)
        assert head is not None
        return head

    # --- reading ------------------------------------------------------------------------------

    def _seen(self, run_id: str) -> History:
        head = self.head(run_id)
        detail = self._queries.detail(PROJECT, head.workflow, run_id)
        assert detail.steps_cursor is None
        assert (head.notify_pending, head.lease_token, head.wake_at) == (False, None, None)
        return History(
            started=head.created_at - EPOCH,
            ended=(head.ended_at or 0) - EPOCH,
            status=str(detail.run.status),
            cursor=detail.run.position,
            output=_text(detail.output),
            last_error=detail.run.last_error,
            compensation=detail.compensation.state,
            compensating=detail.compensation.step,
            rows=[self._row(row) for row in detail.steps],
            attempts=self.attempts[run_id],
        )

    def _row(self, row: StepRow) -> Row:
        record = row.record
        return Row(
            key=row.key,
            kind=row.kind,
            started=_since(record.started_at),
            status=str(record.status),
            attempt=record.attempt,
            finished=_since(record.finished_at),
            output=_text(row.output),
            error=record.error,
            code=record.code,
            child=None if row.child is None else self.paths.get(row.child, NO_RUN),
            parent=row.parent,
        )


class NotedRuns(MemoryRuns):
    """Notes the path of every run that is created."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self._stage = stage

    def create(self, head: Head, blobs: Sequence[Blob] = ()) -> Written:
        written = super().create(head, blobs)
        assert isinstance(written, Done)
        path: Path = ()
        if head.parent is not None:
            parent = self._stage.head(head.parent)
            record = next(one for one in journal_of(parent).open if one.child == head.run_id)
            number, _ = UNNAMED.number_of(record.key)
            step = _step_at(self._stage.scenario, parent.workflow, number)
            given = head.input if head.input is not None else self.blob(head.run_id, "input")
            assert given == jsonvalue.encode(step.get("payload", {}))
            assert head.depth == parent.depth + 1
            path = (*self._stage.paths[head.parent], (step["key"], record.attempt))
        assert path not in self._stage.paths.values()
        self._stage.paths[head.run_id] = path
        self._stage.attempts[head.run_id] = []
        return written


def _step_at(scenario: Scenario, workflow: str, ordinal: int) -> Mapping[str, Any]:
    steps = scenario.workflows[workflow].document["steps"]
    flat = [step for top in steps for step in (top, *top.get("children", ()))]
    found: Mapping[str, Any] = flat[ordinal]
    return found


@contextmanager
def small(bounds: Bounds) -> Iterator[None]:
    """The engine with the limits of a scenario."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(limits, name, value)
        patch.setattr(limits, "MAX_OUTPUT", bounds.output)
        patch.setattr(limits, "MAX_RUN_ATTEMPTS", bounds.attempts)
        patch.setattr(limits, "CHILDREN_AT_ONCE", bounds.at_once)
        patch.setattr(limits, "MAX_DEPTH", bounds.depth)
        yield


def _since(at: int | None) -> int | None:
    return None if at is None else at - EPOCH


def _text(output: bytes | None) -> str | None:
    return None if output is None else output.decode()
