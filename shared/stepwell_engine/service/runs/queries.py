"""Reading runs: lists, details, and waiting for a run to end."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from stepwell_engine import limits
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.program import Program
from stepwell_engine.core.run.records import Joined, Stored
from stepwell_engine.core.run.status import Status
from stepwell_engine.core.run.view import Compensation, Records, RunView, StepRow
from stepwell_engine.core.values.excerpt import excerpt
from stepwell_engine.errors import NewerFormat, Problem
from stepwell_engine.ports import Clock, LongPollSlots, Runs
from stepwell_engine.service.paging import (
    cursor,
    foreign,
    listing,
    number_position,
    page,
    text_position,
)
from stepwell_engine.service.projects.definitions import Workflows
from stepwell_engine.service.retry_unavailable import retry_unavailable
from stepwell_engine.service.runs.run_reader import RunReader, journal_of
from stepwell_engine.service.runs.store_refusals import StoreRefusals

_RUN_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_FIRST_PAUSE: Final = 5  # ms between two looks at a run that is waited for
_LONGEST_PAUSE: Final = 200  # ms
_SCANNED_PAGES: Final = 10  # of a list with a filter that the store does not know


@dataclass(frozen=True, slots=True)
class Span:
    """A range of times, ms since the epoch, `begin` included, `end` not; None: no bound."""

    begin: int | None = None
    end: int | None = None


_ALWAYS: Final = Span()


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as a list shows it. `status` is the one that a reader sees; `code` is that of what
    the run failed of, or of a live run's `last_error`.
    """

    head: Head
    status: Status
    position: int
    last_error: str | None
    code: str | None


@dataclass(frozen=True, slots=True)
class RunDetail:
    """A run with its first steps. `input` and `output` are compact JSON, times in ms.

    `parent_workflow`: of its parent, None where there is none, or none that can be read any more.
    """

    run: RunRow
    parent_workflow: str | None
    input: bytes
    output: bytes | None
    compensation: Compensation
    started_at: int | None
    reason: str | None
    steps: Sequence[StepRow]
    steps_cursor: str | None


@dataclass(frozen=True, slots=True)
class _Read:
    """A run with everything recorded of it, and a row per step."""

    head: Head
    journal: Journal
    program: Program
    records: Records
    view: RunView
    rows: Sequence[StepRow]
    reader: RunReader


class Queries:
    """Answers about runs. A run of another project or workflow is Problem `not_found`."""

    def __init__(
        self,
        runs: Runs,
        workflows: Workflows,
        clock: Clock,
        refusals: StoreRefusals,
        slots: LongPollSlots | None = None,
    ) -> None:
        """`refusals` are those to the workers of this process. `slots`: None lets all wait."""
        self._runs = runs
        self._workflows = workflows
        self._clock = clock
        self._refusals = refusals
        self._slots = slots

    def list(
        self,
        project: str,
        workflow: str,
        given: str | None,
        limit: int,
        status: Status | None = None,
        created: Span = _ALWAYS,
    ) -> tuple[Sequence[RunRow], str | None]:
        """Runs of a workflow created in a span, newest first, and the cursor of the next page.

        A page of a filtered list may hold fewer than `limit`; only the cursor None ends it.
        Problem: `not_found` for no such workflow, `invalid_request` for the cursor.
        """
        of = listing("runs", project, workflow, status, created.begin, created.end)
        before = min(filter(None, (_run_position(of, given), _first_id(created.end))), default=None)
        oldest = _first_id(created.begin) or ""
        self._workflows.newest(project, workflow)
        # Stores do not know `running`: it is any live status with a lease in force.
        stored = None if status is Status.RUNNING else status
        now = self._clock.now()
        found: list[RunRow] = []
        for _ in range(_SCANNED_PAGES):
            heads = self._runs.list(project, workflow, before, limit + 1, stored)
            for count, head in enumerate(heads[:limit], 1):
                if head.run_id < oldest:
                    return found, None
                before = head.run_id
                if status in (None, head.shown_status(now)):
                    try:
                        found.append(_row(head, journal_of(head), now))
                    except NewerFormat:
                        continue  # as a store leaves out a head of a newer format
                    if len(found) == limit:
                        return found, cursor(of, before) if count < len(heads) else None
            if len(heads) <= limit:
                return found, None
        return found, cursor(of, str(before))

    def detail(self, project: str, workflow: str, run_id: str, wait: int = 0) -> RunDetail:
        """A run, at once, or when it has ended or `wait` seconds are over.

        Where no place to wait in is free, or the home is about to stop: at once, as it is.
        """
        ends = self._clock.now() + wait * limits.SECOND
        head = self._find(project, workflow, run_id)
        if wait and head.live:
            head = self._waited_for(head, ends)
        now = self._clock.now()
        read = self._read(head, now)
        started = [at for row in read.rows if (at := row.record.started_at) is not None]
        steps, steps_cursor = self._page(read, None, limits.MAX_STEPS_IN_DETAIL)
        return RunDetail(
            run=_row(head, read.journal, now),
            parent_workflow=self._workflow(head.parent),
            input=head.input if head.input is not None else read.reader.blob(head, "input"),
            output=read.reader.run_output(head, read.program, read.records),
            compensation=read.view.compensation(),
            started_at=min(started, default=None),
            reason=self._refusals.of(run_id) or read.view.reason(),
            steps=steps,
            steps_cursor=steps_cursor,
        )

    def _waited_for(self, head: Head, ends: int) -> Head:
        if self._slots is not None and not self._slots.acquire():
            return head
        try:
            pause = _FIRST_PAUSE
            while head.live and (now := self._clock.now()) < ends:
                if self._slots is not None and not self._slots.may_wait():
                    break
                self._clock.sleep(min(pause, ends - now))
                pause = min(pause * 2, _LONGEST_PAUSE)
                head = self._find(head.project, head.workflow, head.run_id)
        finally:
            if self._slots is not None:
                self._slots.release()
        return head

    def steps(
        self, project: str, workflow: str, run_id: str, given: str | None, limit: int
    ) -> tuple[Sequence[StepRow], str | None]:
        """The steps of a run in definition order, and the cursor of the next page."""
        after = number_position(_steps(run_id), given)
        head = self._find(project, workflow, run_id)
        return self._page(self._read(head, self._clock.now()), after, limit)

    def _find(self, project: str, workflow: str, run_id: str) -> Head:
        head = None
        if _RUN_ID.fullmatch(run_id):
            head = retry_unavailable(self._clock, lambda: self._runs.get(run_id))
        if head is None or head.project != project or head.workflow != workflow:
            raise Problem(
                "not_found", f"there is no run {excerpt(run_id)} of workflow {excerpt(workflow)}"
            )
        return head

    def _workflow(self, run_id: str | None) -> str | None:
        if run_id is None:
            return None
        try:
            head = retry_unavailable(self._clock, lambda: self._runs.get(run_id))
        except NewerFormat:
            return None
        return None if head is None else head.workflow

    def _read(self, head: Head, now: int) -> _Read:
        program = self._program(head)
        journal = journal_of(head, program.keys)
        reader = RunReader(self._runs, self._clock)
        records = reader.records(head, journal, program.keys)
        view = program.view(head, journal, records, now)
        return _Read(head, journal, program, records, view, view.rows(), reader)

    def _program(self, head: Head) -> Program:
        """The run's version; the one without steps if it is no good, which the run failed of."""
        try:
            return self._workflows.load(head.project, head.workflow, head.version)
        except (Problem, ValueError):
            return self._workflows.unreadable(head.project, head.workflow, head.version)

    def _page(
        self, read: _Read, after: int | None, limit: int
    ) -> tuple[Sequence[StepRow], str | None]:
        rows = [row for row in read.rows if after is None or row.place > after]
        of = _steps(read.head.run_id)
        shown, following = page(of, rows, limit, lambda row: row.place, _size)
        read.reader.fetch(read.head, [row.record.output for row in shown])
        return [self._with_output(read, row) for row in shown], following

    def _with_output(self, read: _Read, row: StepRow) -> StepRow:
        if row.record.output is None:
            return row
        found = read.reader.output(read.head, read.program, read.records, row.key)
        return replace(row, output=found)


def _steps(run_id: str) -> str:
    return listing("steps", run_id)


def _size(row: StepRow) -> int:
    match row.record.output:
        case Stored(size=size):
            return size or limits.MAX_SIGNAL_PAYLOAD  # which was not stored at first
        case Joined():
            return limits.MAX_OUTPUT
        case inline:
            return len(inline or b"")


def _row(head: Head, journal: Journal, now: int) -> RunRow:
    error, code = last_error(head, journal)
    return RunRow(head, head.shown_status(now), journal.position, error, code)


def last_error(head: Head, journal: Journal) -> tuple[str | None, str | None]:
    """What a run failed of, or what the latest attempt of a live run failed of; and its code.

    Compensating that stopped leaves the code of the step.
    """
    if journal.failure is not None:
        return journal.failure.message, journal.failure.code
    # What was recorded last stands last.
    opened = reversed(journal.open) if head.live else ()
    return next(((one.error, one.code) for one in opened if one.error), (None, None))


def _first_id(at: int | None) -> str | None:
    """The smallest id of a run created at `at` or later: run ids are UUIDv7."""
    if at is None:
        return None
    ms = f"{at:012x}"
    return f"{ms[:8]}-{ms[8:]}-0000-0000-000000000000"


def _run_position(of: str, given: str | None) -> str | None:
    position = text_position(of, given)
    if position is not None and _RUN_ID.fullmatch(position) is None:
        raise foreign()
    return position
