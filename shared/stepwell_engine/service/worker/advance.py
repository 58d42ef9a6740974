"""Advancing a run: claim it, hold it as long as it can go on, settle it when it has ended.

One worker at a time holds a run's lease; what it does with it is in `leased_run`.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Final

from stepwell_engine import limits
from stepwell_engine.core.run.head import Head, wake_time
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.run.program import Program
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.core.values.units import EpochMs, LeaseToken, Ms, ProjectRef, RunId
from stepwell_engine.errors import NewerFormat, Problem, StoreError
from stepwell_engine.ports import (
    Clock,
    Dispatcher,
    Done,
    Ids,
    Runs,
    StepRunner,
    TaskGroup,
    TaskGroups,
)
from stepwell_engine.service.retry_unavailable import retry_unavailable
from stepwell_engine.service.runs.children import Awaited, Children, Programs
from stepwell_engine.service.runs.run_reader import codec_of, journal_of
from stepwell_engine.service.worker.abandon import Claimed, abandon_all
from stepwell_engine.service.worker.commits import release_of
from stepwell_engine.service.worker.leased_run import LeasedRun
from stepwell_engine.service.worker.persistence import Persistence
from stepwell_engine.service.worker.place import Place
from stepwell_engine.service.worker.process import WorkerProcess
from stepwell_engine.service.worker.time_budget import TimeBudget
from stepwell_engine.service.worker.tools import Tools

log = logging.getLogger(__name__)

NOT_YET: Final = 5 * limits.SECOND  # after which a child looks again whether it is waited for


class Advance:
    """Advances runs. Safe to call for any run, at any time, from any number of workers."""

    def __init__(
        self,
        runs: Runs,
        programs: Programs,
        runners: Mapping[str, StepRunner],
        task_groups: TaskGroups,
        dispatcher: Dispatcher,
        clock: Clock,
        ids: Ids,
        process: WorkerProcess | None = None,
    ) -> None:
        """`process` is what the workers of this process share."""
        self._runs = runs
        self._programs = programs
        self._task_groups = task_groups
        self._dispatcher = dispatcher
        self._clock = clock
        self._ids = ids
        self._process = process or WorkerProcess()
        self._children = Children(runs, programs, dispatcher, clock)
        self._tools = Tools(runs, runners, dispatcher, clock, ids, self._children, self._process)

    def run(
        self,
        run_id: RunId,
        project: ProjectRef,
        budget: Ms,
        *,
        hard: bool = False,
        lane: Lane = Lane.HOST,
        gate_expires_at: EpochMs | None = None,
    ) -> None:
        """Advance one run until it parks or ends, or `budget` (ms) is used up.

        An attempt begun within the budget may end after it, and others may begin beside it, unless
        the budget is `hard`: then none is begun that could, since this worker may be gone by then.
        (Extending the lease of a long attempt, and recording its outcome, take the time that two
        calls of the store take.)
        A run that has lost its worker again and again may be what ends the process, and with it the
        workers of all others. Each of its attempts runs alone, so that nobody else is blamed: here
        in the lane ALONE, elsewhere from the lane SHARED, in a child process in the lane HOST.
        `gate_expires_at` is when the run's place under a concurrency limit is over, if it needs
        one: each attempt ends before, with the margin.
        Raises StoreError when the store does not answer or refuses: the hint is worth repeating.
        """
        time = TimeBudget(self._clock.now() + budget, hard, lane, gate_expires_at)
        place = Place(self._process.isolation, about_run(run_id, project), self._dispatcher)
        token: LeaseToken | None = None
        try:
            head = self._claim(run_id, project, lane)
            token = None if head is None else head.lease_token
            if head is not None and token is not None:
                self._advance_claimed(head, token, time, place)
        finally:
            if not self._process.abandoned:  # else it is let go of by who abandons it
                self._process.held.pop(token or "", None)
            place.leave()

    def abandon(self, end_attempts: Sequence[Callable[[], None]], within: Ms) -> int:
        """Let go of the runs in progress, since this process ends without waiting for them.

        Nobody counts as lost. First what can be ended of their attempts is: it must not run on
        beside its successor. Returns of how many the store did not take it `within` so many ms.
        """
        self._process.abandoned = True
        for end in end_attempts:
            end()
        return abandon_all(self._tools, within)

    def _advance_claimed(
        self, head: Head, token: LeaseToken, time: TimeBudget, place: Place
    ) -> None:
        """Advance a run whose lease was just taken, a suspect only where it is alone."""
        if not head.suspect or time.lane is Lane.ALONE:
            self._advance_leased(head, token, time, place)
        elif time.lane is Lane.SHARED:  # this very claim has made it one
            self._release(head, time)
            self._dispatcher.hint(about_run(head.run_id, head.project), alone=True)
        elif place.enter():
            self._advance_leased(head, token, time, place)
        else:  # it is hinted when it is its turn; the tick looks, too
            self._release(head, time, looked_at=limits.LEASE)

    def _advance_leased(
        self, head: Head, token: LeaseToken, time: TimeBudget, place: Place
    ) -> None:
        run: LeasedRun | None = None
        try:
            with closing(self._task_groups.open()) as group:
                run = self._prepare(head, token, time, group, place)
                if run is not None:
                    self._process.held[token] = run
                    self._go(run)
        except NewerFormat as error:  # of the version, of this run or of one beside it
            self._process.met_newer(head.run_id, error)  # a newer worker will take it
            if run is None:
                self._let_go(run, head, limits.LEASE, time)
        except StoreError:
            # Nobody knows the program or the child now, which says nothing about the run.
            self._let_go(run, head, 0, time)
            raise
        except Exception:
            self._let_go(run, head, limits.LEASE, time)
            raise

    def _go(self, run: LeasedRun) -> None:
        try:
            run.go()
        except NewerFormat:
            run.let_go()
            raise

    def _prepare(
        self, head: Head, token: LeaseToken, time: TimeBudget, group: TaskGroup, place: Place
    ) -> LeasedRun | None:
        """The run with its program, ready to go; None if there is nothing to do now."""
        awaited = self._awaited(head)
        if awaited is Awaited.NOT_YET:
            self._put_back(head, NOT_YET, time)
            return None
        if awaited is Awaited.NO:
            head = self._children.stop(head)
            if head.lease_token != token:
                return None  # lost meanwhile: a token that is found is another worker's
        try:
            program = self._program(head)
            return LeasedRun(self._tools, program, head, group, time, place)
        except (Problem, ValueError) as error:
            program = self._programs.unreadable(head.project, head.workflow, head.version)
            run = LeasedRun(self._tools, program, head, group, time, place)
            run.fail(f"version {head.version} cannot be loaded: {error}")
            return None

    def _let_go(self, run: LeasedRun | None, claimed: Head, pause: Ms, time: TimeBudget) -> None:
        """Release a run that this worker cannot go on with, so that nobody counts as lost.

        Unless it still has an outcome in hand: then the lease is kept, for what it is worth.
        """
        head = claimed if run is None else run.head
        if head.lease_token is None or not head.live or not (run is None or run.empty_handed):
            return
        try:
            self._release(head, time, pause)
        except StoreError as error:
            log.warning("run %s: its lease runs out: %s", head.run_id, error)

    def _claim(self, run_id: RunId, project: ProjectRef, lane: Lane) -> Head | None:
        """The head with the lease taken, or None if there is nothing to do now."""
        refusals = self._process.refusals
        if refusals.in_hand(run_id, self._clock.now()):
            return None  # a worker of this process waits for the store, its lease over or not
        unanswered = self._process.unanswered
        token = unanswered.take(run_id, lane) or self._ids.token()
        while True:
            now = self._clock.now()
            claim = partial(self._runs.claim, run_id, token, now, now + limits.LEASE, lane)
            try:
                written = self._process.claim(
                    token, partial(retry_unavailable, self._clock, claim), self._took
                )
            except NewerFormat as error:
                self._process.met_newer(run_id, error)
                return None
            except StoreError as error:
                unanswered.keep(run_id, lane, token)
                refusals.unclaimed(run_id, error.reason)
                raise
            if written is None:
                return None  # the process ends
            refusals.claimed(run_id)
            if isinstance(written, Done):
                return written.head
            head = written.head
            if head is None:
                return None
            if not head.live or head.overdue(now):
                self._settle_over(head, now)
                return None
            left = head.lease_expires_at + limits.CLOCK_MARGIN - now
            if head.lease_token is not None and left >= 0:
                self._hint_at_the_end(head, left)
                return None
            missing = wake_time(head.ready_at, head.deadline) - now
            if missing > limits.CLAIM_WAIT:
                return None  # the run has parked since: that sent a hint, or the tick will
            if lane is Lane.SHARED and head.suspect and missing <= 0:
                self._dispatcher.hint(about_run(run_id, project), alone=True)
                return None
            self._clock.sleep(max(missing, 1))

    def _took(self, head: Head) -> None:
        self._process.held[head.lease_token or ""] = Claimed(self._tools, head)

    def _settle_over(self, head: Head, now: EpochMs) -> None:
        """Do what a run whose deadline is over, or that has ended, still needs of a worker.

        If this version can read it.
        """
        try:
            if head.live:
                time_out = partial(self._runs.time_out, head.run_id, now, head.generation)
                head = retry_unavailable(self._clock, time_out).head or head
            if not head.live:
                self._children.notify(head)
                self._close(head)
        except NewerFormat as error:
            self._process.met_newer(head.run_id, error)

    def _close(self, head: Head) -> None:
        """Settle a stopped run whose worker never came back: its step becomes cancelled."""
        now = self._clock.now()
        if not head.stopped or head.lease_token is None:
            return
        left = head.lease_expires_at + limits.CLOCK_MARGIN - now
        if left >= 0:
            self._hint_at_the_end(head, left)
            return
        data = head.journal
        try:
            program = self._program(head)
        except (Problem, ValueError):
            log.exception("run %s: its version cannot be loaded", head.run_id)
        else:
            journal = program.close(journal_of(head, program.keys), head.ended_at or now)
            data = codec_of(head, program.keys).encode(journal)
        self._runs.close(head.run_id, head.lease_token, head.commit_seq, data)
        self._children.leave_unstarted(head, journal_of(head))

    def _hint_at_the_end(self, head: Head, left: Ms) -> None:
        """Repeat the hint for a lease's end, `left` ms away: the margin must not cost it."""
        if left <= 2 * limits.CLOCK_MARGIN:
            self._dispatcher.hint(about_run(head.run_id, head.project), left + 1)

    def _program(self, head: Head) -> Program:
        load = partial(self._programs.load, head.project, head.workflow, head.version)
        return retry_unavailable(self._clock, load)

    def _awaited(self, head: Head) -> Awaited:
        """Whether a run may begin that has not: a child only once its parent waits for it.

        One that was revived goes on for whoever asked for that.
        """
        unbegun = head.parent is not None and head.live and not head.journal
        unbegun = unbegun and head.generation == 0
        return self._children.awaited(head) if unbegun else Awaited.YES

    def _put_back(self, head: Head, pause: Ms, time: TimeBudget) -> None:
        """Let go of a run as it was claimed, and look at it again after `pause` ms."""
        self._release(head, time, pause)
        self._dispatcher.hint(about_run(head.run_id, head.project), pause)

    def _release(
        self, head: Head, time: TimeBudget, pause: Ms = 0, looked_at: Ms | None = None
    ) -> None:
        """Let go of a run as it is, for `pause` ms at least; nobody counts as lost.

        The tick looks at it then, or after `looked_at` ms.
        """
        persist = Persistence(self._clock, self._process.refusals, head.run_id, time.patience)
        now = self._clock.now()
        wake_at = None if looked_at is None else now + looked_at
        persist(partial(self._runs.let_go, release_of(head, now + pause, wake_at)))
