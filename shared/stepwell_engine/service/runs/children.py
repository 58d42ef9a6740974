"""Child runs: started by their parent, and notifying it of their end."""

from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Protocol

from stepwell_engine import limits
from stepwell_engine.core.run.attempt import Failed
from stepwell_engine.core.run.child import ChildResult, message_of
from stepwell_engine.core.run.decision import StartChild
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.keys import UNNAMED
from stepwell_engine.core.run.program import Program
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.errors import Problem
from stepwell_engine.ports import Clock, Delivered, Dispatcher, Done, Runs
from stepwell_engine.service.retry_unavailable import retry_unavailable
from stepwell_engine.service.runs.run_reader import RunReader, journal_of, live_children


class Programs(Protocol):
    """Where the programs of workflows are found."""

    def enabled(self, project: str, workflow: str) -> int:
        """The highest enabled version. Problem `not_found` or `workflow_disabled`."""
        ...

    def load(self, project: str, workflow: str, version: int) -> Program:
        """NewerFormat if this version cannot read it; Problem or ValueError if it is no good."""
        ...

    def unreadable(self, project: str, workflow: str, version: int) -> Program:
        """The program that stands for one which is no good: it has no steps."""
        ...


class Awaited(Enum):
    """Whether a parent waits for a child: not yet, if it has not recorded that the child exists."""

    YES = "yes"
    NOT_YET = "not yet"
    NO = "no"


class Children:
    """What passes between a parent and its children."""

    def __init__(
        self, runs: Runs, programs: Programs, dispatcher: Dispatcher, clock: Clock
    ) -> None:
        self._runs = runs
        self._programs = programs
        self._dispatcher = dispatcher
        self._clock = clock

    def start(self, parent: Head, start: StartChild, child: str) -> Failed | None:
        """Create the child, once however often it is tried; what prevents it, if anything.

        It begins once its parent has recorded that it waits for it.
        """
        workflow = start.workflow
        try:
            enabled = partial(self._programs.enabled, parent.project, workflow)
            version = retry_unavailable(self._clock, enabled)
        except Problem as problem:
            missing = problem.code == "not_found"
            code = "unknown_resource" if missing else None
            return Failed(problem.detail, code, retryable=not missing)
        payload = jsonvalue.encode(start.payload)
        inline = len(payload) <= limits.INLINE_INPUT
        now = self._clock.now()
        head = Head(
            run_id=child,
            project=parent.project,
            workflow=workflow,
            version=version,
            created_at=now,
            wake_at=now + limits.LEASE,
            input=payload if inline else None,
            test=parent.test,
            parent=parent.run_id,
            depth=parent.depth + 1,
            format=limits.BASE_RUN_FORMAT,
        )
        blobs = () if inline else (Blob("input", payload),)
        retry_unavailable(self._clock, lambda: self._runs.create(head, blobs))
        return None

    def cancel(self, child: str, now: int) -> ChildResult:
        """Cancel a child as of `now`, with all that it started; its result if it ended before."""
        head = self._stop(child, now)
        if head is not None:
            self.cascade(head)
        return ChildResult(Status.CANCELLED, now) if head is None else self.result(head)

    def awaited(self, child: Head) -> Awaited:
        """Whether a child that has not begun may begin: whether its parent waits for it.

        A worker of the parent may stall before it creates the child, for as long as it takes
        others to give it up: so no look before tells, and none by the parent's clock. NewerFormat
        if this version cannot read the parent.
        """
        parent_id = child.parent or ""
        parent = retry_unavailable(self._clock, lambda: self._runs.get(parent_id))
        if parent is None:
            return Awaited.NO
        journal = journal_of(parent)
        if parent.live:
            known = [one for one in journal.open if one.child == child.run_id]
        elif parent.stopped and not parent.cascade:
            # What it waited for goes on. What it was only about to start has no name any more.
            reader = RunReader(self._runs, self._clock)
            records = reader.records(parent, journal, UNNAMED).values()
            known = [one for one in records if one.child == child.run_id]
        else:
            known = []
        statuses = {one.status for one in known}
        if statuses & {StepStatus.WAITING, StepStatus.CANCELLED}:
            return Awaited.YES
        return Awaited.NOT_YET if parent.live and StepStatus.PENDING in statuses else Awaited.NO

    def leave_unstarted(self, parent: Head, journal: Journal) -> None:
        """Hint the child that a cancelled run was about to start: it ends before it begins."""
        for record in journal.open:
            if record.child is not None and record.status is StepStatus.PENDING:
                self._dispatcher.hint(about_run(record.child, parent.project))

    def stop(self, child: Head) -> Head:
        """Cancel a child, with all that it started; how it stands then."""
        return self._stop(child.run_id, self._clock.now()) or child

    def _stop(self, child: str, now: int) -> Head | None:
        """Cancel a run with all that it started, and hint that; its head, however it ended."""
        cancel = partial(self._runs.cancel, child, now, True)
        written = retry_unavailable(self._clock, cancel)
        while written.head is not None and written.head.live:  # revived since
            cancel = partial(self._runs.cancel, child, now, True, written.head.generation)
            written = retry_unavailable(self._clock, cancel)
        if isinstance(written, Done):
            self._dispatcher.hint(about_run(child, written.head.project))
        return written.head

    def notify(self, head: Head) -> None:
        """Do what is pending after the end of a run: cancel its children, notify its parent."""
        if not head.notify_pending:
            return
        self.cascade(head)
        if head.parent is not None and head.owes_notice:
            self._tell(head, head.parent)
        mark = partial(self._runs.mark_notified, head.run_id, head.generation)
        retry_unavailable(self._clock, mark)

    def cascade(self, head: Head) -> None:
        """Cancel the children of a run that was cancelled with them."""
        for child in live_children(journal_of(head)) if head.cascade else ():
            stopped = self._stop(child, self._clock.now())
            if stopped is not None:
                self.notify(stopped)

    def _tell(self, head: Head, parent: str) -> None:
        """A parent that has ended needs no telling."""
        message, output = message_of(self.result(head))
        blob = None if output is None else Blob(f"m.{head.run_id}", output)
        message = replace(message, blob=None if blob is None else blob.name)
        now = self._clock.now()
        delivered = retry_unavailable(
            self._clock, lambda: self._runs.deliver(parent, head.run_id, message, now, blob)
        )
        if isinstance(delivered, Delivered):
            self._dispatcher.hint(about_run(parent, head.project))

    def result(self, head: Head) -> ChildResult:
        """How a run that has ended ended."""
        journal = journal_of(head)
        failure = journal.failure
        return ChildResult(
            status=head.status,
            ended_at=head.ended_at or head.created_at,
            message=None if failure is None else failure.message,
            code=None if failure is None else failure.code,
            output=self._output(head) if head.status is Status.SUCCEEDED else None,
        )

    def _output(self, head: Head) -> bytes | None:
        load = partial(self._programs.load, head.project, head.workflow, head.version)
        try:
            program = retry_unavailable(self._clock, load)
        except (Problem, ValueError):
            return None
        reader = RunReader(self._runs, self._clock)
        records = reader.records(head, journal_of(head, program.keys), program.keys)
        return reader.run_output(head, program, records)
