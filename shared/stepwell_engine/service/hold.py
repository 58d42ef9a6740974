"""One run in the hands of one worker: decide, act, settle and commit, as long as it can go on.

Whatever the worker wants to say to others (hints, mail) goes out after the write that makes it
true.
"""

import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from stepwell_engine import limits
from stepwell_engine.core import journal as journals
from stepwell_engine.core.decide import decide
from stepwell_engine.core.definition import Definition, Kind
from stepwell_engine.core.instructions import Abandon, Decision, Finish, Launch, Park, Perform
from stepwell_engine.core.journal import Journal
from stepwell_engine.core.outcome import Act, Failed, Outcome
from stepwell_engine.core.run import Head, Status
from stepwell_engine.core.settle import settle, settle_cancelled, stop
from stepwell_engine.core.subworkflow import (
    begin_child,
    child_not_started,
    child_started,
    settle_child,
)
from stepwell_engine.ports import Clock, Commit, Crew, Dispatcher, Done, Ids, Performer, Runs
from stepwell_engine.service.children import Children
from stepwell_engine.service.records import journal_of
from stepwell_engine.service.repeat import repeat

log = logging.getLogger(__name__)

# What starting or cancelling a child run may take: a few calls of the store.
CHILD_CALLS = 10 * limits.SECOND


@dataclass(frozen=True, slots=True)
class Time:
    """How long a worker may go on: until `ends` (ms since the epoch), see Advance.run."""

    ends: int
    hard: bool

    def allows(self, act: Act, now: int, beside: bool) -> bool:
        """Whether the act may begin now; `beside` others, which keep the worker here anyway."""
        if self.hard:
            return now + act.timeout <= self.ends and now < self.ends
        return beside or now < self.ends


@dataclass(frozen=True, slots=True)
class Tools:
    """What a worker works with."""

    runs: Runs
    performers: Mapping[Kind, Performer]
    dispatcher: Dispatcher
    clock: Clock
    ids: Ids
    children: Children


@dataclass(frozen=True, slots=True)
class Tried:
    """An outcome in hand that no commit carries yet."""

    act: Act
    outcome: Outcome
    started: int
    finished: int


class Hold:
    """A run whose lease this worker holds, until it lets go or loses it.

    `committed` is the journal as stored; `journal` the one in hand, ahead of it by `tried`.
    """

    def __init__(
        self, tools: Tools, definition: Definition, head: Head, crew: Crew, time: Time
    ) -> None:
        """`head` as the claim returned it, with this worker's token."""
        self._tools = tools
        self._definition = definition
        self._crew = crew
        self._time = time
        self._token = head.token or ""
        self._head = head
        self._committed = journal_of(head)
        self._journal = self._committed
        self._tried: list[Tried] = []
        self._flying: set[tuple[int, bool]] = set()
        self._landed: deque[Tried] = deque()
        self._waited = False  # for acts in flight, since the head was last seen

    def go(self) -> None:
        """Advance the run until it parks or ends, its time is up, or the lease is lost."""
        if not self._head.live:  # cancelled between a claim and its unanswered repeat
            self._record_cancelled(self._head)
            return
        while self._turn():
            pass

    def end(self, journal: Journal) -> None:
        """Fail the run at once, for a structural reason that stands in `journal`."""
        now = self._tools.clock.now()
        self._commit(Decision(journal, Finish(Status.FAILED)), now, release=True)

    # --- one turn of the loop -----------------------------------------------------------------

    def _turn(self) -> bool:
        """One decision and what follows from it; whether to go on."""
        now = self._tools.clock.now()
        flying = frozenset(self._flying)
        decision = decide(self._definition, self._head, self._journal, self._head.mail, now, flying)
        match decision.next:
            case Perform(acts, until):
                return self._perform(decision, acts, until, now)
            case Launch():
                return self._launch(decision, decision.next, now)
            case Abandon(child=child):
                return self._abandon(decision, child, now)
            case _:
                return self._commit(decision, now, release=True)

    def _perform(
        self, decision: Decision, wanted: tuple[Act, ...], until: int | None, now: int
    ) -> bool:
        acts = [act for act in wanted if self._time.allows(act, now, bool(self._flying))]
        out_of_time = bool(wanted) and not acts and not self._flying
        if self._unrecorded(decision) and not decision.hold:
            return self._commit(decision, now, release=out_of_time)
        if out_of_time:
            return self._commit(decision, now, release=True)
        if acts and self._waited:
            # Nothing was written since: a cancel that came meanwhile must be seen before the act.
            head = self._read()
            self._waited = False
            if head is None or head.writes != self._head.writes:
                return self._refused(head)
        alone = len(acts) == 1 and not self._flying and until is None
        for act in acts:
            started = self._secure(act.timeout)
            if started is None:
                return self._refused(self._read())
            if alone:
                self._landed.append(self._try(act, started))
            else:
                self._flying.add((act.ordinal, act.undo))
                self._crew.start(partial(self._fly, act, started))
        if not alone:
            self._crew.wait(None if until is None else max(0, until - self._tools.clock.now()))
            self._waited = True
        self._settle_landed()
        return True

    def _fly(self, act: Act, started: int) -> None:
        self._landed.append(self._try(act, started))

    def _try(self, act: Act, started: int) -> Tried:
        try:
            outcome = self._tools.performers[act.kind].perform(act)
        except Exception as error:  # a performer's own defect must not stop the run's life
            log.exception("run %s: step %s", act.run_id, act.step)
            outcome = Failed(f"the engine failed to run this step: {error!r}")
        return Tried(act, outcome, started, self._tools.clock.now())

    def _settle_landed(self) -> None:
        while self._landed:
            tried = self._landed.popleft()
            act = tried.act
            self._flying.discard((act.ordinal, act.undo))
            self._tried.append(tried)
            self._journal = settle(
                self._definition, self._journal, act, tried.outcome, tried.started, tried.finished
            )

    def _launch(self, decision: Decision, launch: Launch, now: int) -> bool:
        step = self._definition.flat[launch.ordinal]
        if launch.child is None:
            child = self._tools.ids.run_id()
            begun = begin_child(step, decision.journal, launch.attempt, child, now)
            return self._commit(replace(decision, journal=begun), now, release=False)
        if self._unrecorded(decision):
            return self._commit(decision, now, release=False)
        if self._secure(CHILD_CALLS) is None:
            return self._refused(self._read())
        failed = self._tools.children.launch(self._head, step, launch.child)
        self._journal = (
            child_started(step, self._journal)
            if failed is None
            else child_not_started(self._definition, self._journal, failed, self._tools.clock.now())
        )
        return True

    def _abandon(self, decision: Decision, child: str, now: int) -> bool:
        if self._unrecorded(decision):
            return self._commit(decision, now, release=False)
        if self._secure(CHILD_CALLS) is None:
            return self._refused(self._read())
        # Cancelled at the time that was found to be over, whatever the clock says by now.
        result = self._tools.children.abandon(child, now)
        now = self._tools.clock.now()
        self._journal = settle_child(self._definition, self._journal, result, now)
        return True

    def _secure(self, needed: int) -> int | None:
        """The time now, if the lease lasts `needed` ms and the margin from here, or is made to.

        None: it could not be extended. The clock is read last, right before the act.
        """
        while True:
            now = self._tools.clock.now()
            if now + needed + limits.CLOCK_MARGIN < self._head.until:
                return now
            until = now + max(limits.LEASE, needed + 3 * limits.CLOCK_MARGIN)
            extend = partial(self._tools.runs.extend, self._head.run_id, self._token, until, until)
            extended = repeat(self._tools.clock, extend)
            if not isinstance(extended, Done):
                return None
            self._head = extended.head

    def _read(self) -> Head | None:
        return repeat(self._tools.clock, lambda: self._tools.runs.get(self._head.run_id))

    # --- commit -------------------------------------------------------------------------------

    def _unrecorded(self, decision: Decision) -> bool:
        return decision.journal is not self._committed

    def _commit(self, decision: Decision, now: int, release: bool) -> bool:
        """Write the decision; dispatch what follows from it; whether to go on."""
        head = self._head
        packed = journals.pack(decision.journal, head.created_at, self._token, head.writes)
        commit = Commit(
            run_id=head.run_id,
            token=self._token,
            commit=head.commit,
            journal=packed.data,
            revision=head.revision if decision.absent else None,
            release=release,
            progress=self._unrecorded(decision),
            consumed=decision.consumed,
            blobs=packed.blobs,
        )
        match decision.next:
            case Park(status, ready_at):
                commit = replace(
                    commit,
                    status=status,
                    ready_at=ready_at,
                    wake_at=ready_at,
                    revision=head.revision,
                )
            case Finish(status):
                owes = head.parent is not None
                commit = replace(
                    commit,
                    status=status,
                    ended_at=now,
                    wake_at=now if owes else None,
                    owes=owes,
                )
            case _ if release:
                commit = replace(commit, status=Status.PENDING, ready_at=0, wake_at=now)
            case _:
                commit = replace(commit, status=Status.PENDING)
        written = repeat(self._tools.clock, lambda: self._tools.runs.commit(commit))
        if not isinstance(written, Done):
            return self._refused(written.head)
        self._take(written.head, packed.journal)
        self._dispatch(decision, now, release)
        return not release

    def _dispatch(self, decision: Decision, now: int, release: bool) -> None:
        head = self._head
        match decision.next:
            case Park(ready_at=ready_at):
                delay = max(0, ready_at - now)
                if delay <= limits.MAX_HINT_DELAY:
                    self._tools.dispatcher.hint(head.run_id, head.project, delay)
            case Finish():
                self._tools.children.pay(head)
            case _ if release:
                self._tools.dispatcher.hint(head.run_id, head.project)

    def _take(self, head: Head, journal: Journal) -> None:
        """Go on from a head as it is stored now."""
        self._head = head
        self._committed = self._journal = journal
        self._tried = []
        self._waited = False

    # --- refusals -----------------------------------------------------------------------------

    def _refused(self, head: Head | None) -> bool:
        """Go on from the head that refused a write, if this worker still holds it."""
        if head is None or head.token != self._token:
            return False  # the lease is lost, or a releasing write of this worker had succeeded
        if head.commit != self._head.commit:
            # This worker's own write had succeeded although the store did not answer.
            self._take(head, journal_of(head))
        self._head = head  # with new mail, perhaps: decide again
        if head.status is Status.CANCELLED:
            self._record_cancelled(head)
            return False
        return True

    def _record_cancelled(self, head: Head) -> None:
        """The run was cancelled meanwhile: record what is in flight, move nothing."""
        while self._flying:
            self._crew.wait(None)
            self._settle_landed()
        journal = self._committed
        at = head.ended_at or self._tools.clock.now()
        for tried in self._tried:
            journal = settle_cancelled(
                self._definition,
                journal,
                tried.act,
                tried.outcome,
                tried.started,
                tried.finished,
                at,
            )
        self._tools.children.take_back(journal)
        journal = stop(self._definition, journal, at)
        packed = journals.pack(journal, head.created_at, self._token, head.writes)
        commit = Commit(
            run_id=head.run_id,
            token=self._token,
            commit=head.commit,
            journal=packed.data,
            expect="cancelled",
            release=True,
            progress=True,
            wake_at=None,
            blobs=packed.blobs,
        )
        repeat(self._tools.clock, lambda: self._tools.runs.commit(commit))
