"""Advancing a run: claim it, hold it as long as it can go on, settle it when it has ended.

One worker at a time holds a run's lease; what it does with it is in `hold`.
"""

import logging
from collections.abc import Mapping
from contextlib import closing
from functools import partial

from stepwell_engine import limits
from stepwell_engine.core import journal as journals
from stepwell_engine.core.definition import Definition, Kind
from stepwell_engine.core.run import Head, Status
from stepwell_engine.core.settle import stop
from stepwell_engine.core.transitions import fail_run
from stepwell_engine.errors import NewerFormat, Problem, StoreError
from stepwell_engine.ports import (
    Clock,
    Commit,
    Crews,
    Dispatcher,
    Done,
    Gate,
    Ids,
    Performer,
    Runs,
)
from stepwell_engine.service.children import Children, Versions
from stepwell_engine.service.hold import Hold, Time, Tools
from stepwell_engine.service.records import journal_of
from stepwell_engine.service.repeat import repeat

log = logging.getLogger(__name__)


class Advance:
    """Advances runs. Safe to call for any run, at any time, from any number of workers."""

    def __init__(
        self,
        runs: Runs,
        versions: Versions,
        performers: Mapping[Kind, Performer],
        crews: Crews,
        dispatcher: Dispatcher,
        clock: Clock,
        ids: Ids,
        gate: Gate | None = None,
    ) -> None:
        """`gate`: for workers that share a process, and die together; see `run`."""
        self._runs = runs
        self._versions = versions
        self._crews = crews
        self._dispatcher = dispatcher
        self._clock = clock
        self._ids = ids
        self._gate = gate
        self._children = Children(runs, versions, dispatcher, clock)
        self._tools = Tools(runs, performers, dispatcher, clock, ids, self._children)

    def run(self, run_id: str, project: str, budget: int, *, hard: bool = False) -> None:
        """Advance one run until it parks or ends, or `budget` (ms) is used up.

        An act begun within the budget may end after it, unless the budget is `hard`: then none is
        begun that could, since this worker may be gone by then. (Extending the lease of a long
        act, and recording its outcome, take the time that two calls of the store take.)
        A run that has lost its worker again and again may be what ends the process, and with it the
        workers of all others: only one such run at a time goes on, so that only it is blamed.
        Raises Unavailable when the store does not answer; the hint is then worth repeating.
        """
        time = Time(self._clock.now() + budget, hard)
        head = self._claim(run_id, project)
        if head is None or head.token is None:
            return
        if self._gate is None or head.lost < limits.SUSPECT_LOST:
            self._hold(head, head.token, time)
        elif self._gate.enter():
            try:
                self._hold(head, head.token, time)
            finally:
                self._gate.leave()
        else:
            self._put_back(head, head.token, limits.SUSPECT_PAUSE)
            self._dispatcher.hint(run_id, project, limits.SUSPECT_PAUSE)

    def _hold(self, head: Head, token: str, time: Time) -> None:
        with closing(self._crews.open()) as crew:
            try:
                definition = self._definition(head)
            except NewerFormat as error:
                # A newer worker will take it.
                log.warning("run %s: %s", head.run_id, error)
                self._put_back(head, token, limits.LEASE)
            except StoreError:
                # Nobody knows the definition now, which says nothing about the run.
                self._put_back(head, token, 0)
                raise
            except (Problem, ValueError) as error:
                nothing = Definition(head.project, head.workflow, head.version, ())
                hold = Hold(self._tools, nothing, head, crew, time)
                text = f"version {head.version} cannot be loaded: {error}"
                hold.end(fail_run(journal_of(head), text))
            else:
                Hold(self._tools, definition, head, crew, time).go()

    def _claim(self, run_id: str, project: str) -> Head | None:
        """The head with the lease taken, or None if there is nothing to do now."""
        token = self._ids.token()
        while True:
            now = self._clock.now()
            claim = partial(self._runs.claim, run_id, token, now, now + limits.LEASE)
            try:
                written = repeat(self._clock, claim)
            except NewerFormat as error:
                log.warning("run %s: %s", run_id, error)
                return None
            if isinstance(written, Done):
                return written.head
            head = written.head
            if head is None:
                return None
            if not head.live:
                self._children.pay(head)
                self._close(head)
                return None
            left = head.until + limits.CLOCK_MARGIN - now
            if head.token is not None and left >= 0:
                if left <= 2 * limits.CLOCK_MARGIN:
                    # The hint for the lease's end: it must not be lost to the margin.
                    self._dispatcher.hint(run_id, project, left + 1)
                return None
            missing = head.ready_at - now
            if missing > limits.CLAIM_WAIT:
                if missing <= limits.MAX_HINT_DELAY:
                    self._dispatcher.hint(run_id, project, missing)
                return None
            self._clock.sleep(max(missing, 1))

    def _close(self, head: Head) -> None:
        """Settle a cancelled run whose worker never came back: its step becomes cancelled."""
        now = self._clock.now()
        if head.status is not Status.CANCELLED or head.token is None:
            return
        if head.until + limits.CLOCK_MARGIN >= now:
            return
        journal = journal_of(head)
        self._children.take_back(journal)
        try:
            definition = self._definition(head)
        except (Problem, ValueError):
            log.exception("run %s: its definition cannot be loaded", head.run_id)
        else:
            journal = stop(definition, journal, head.ended_at or now)
        data = journals.encode(journal, head.created_at)
        self._runs.close(head.run_id, head.token, head.commit, data)

    def _definition(self, head: Head) -> Definition:
        load = partial(self._versions.load, head.project, head.workflow, head.version)
        return repeat(self._clock, load)

    def _put_back(self, head: Head, token: str, pause: int) -> None:
        """Let go of a run as it was claimed, for `pause` ms at least."""
        later = self._clock.now() + pause
        commit = Commit(
            run_id=head.run_id,
            token=token,
            commit=head.commit,
            journal=head.journal,
            release=True,
            ready_at=later,
            wake_at=later,
        )
        repeat(self._clock, lambda: self._runs.commit(commit))
