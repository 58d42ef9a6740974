"""One run whose lease one worker holds: decide, act, settle and commit, as long as it can go on.

Whatever the worker has to tell others (hints, messages) goes out after the write that makes it
true. What the run executes is a Program: nothing here knows a kind of step.
"""

from collections import deque
from dataclasses import replace
from functools import partial
from typing import assert_never

from stepwell_engine import limits
from stepwell_engine.core.run.attempt import (
    Attempt,
    Deferred,
    UncommittedOutcome,
    deadline_of,
)
from stepwell_engine.core.run.child import ChildEnded, ChildNamed, ChildNotStarted, ChildStarted
from stepwell_engine.core.run.decision import (
    CancelChild,
    Decision,
    Finish,
    Park,
    ReadOverflow,
    StartAttempts,
    StartChild,
)
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.keys import StepKey
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.run.overflow import NOTHING_READ, Taken
from stepwell_engine.core.run.program import Program
from stepwell_engine.core.run.status import Status
from stepwell_engine.core.run.transitions import fail_run
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.core.values.units import EpochMs, Ms, RunId
from stepwell_engine.errors import Unstorable
from stepwell_engine.ports import Done, TaskGroup
from stepwell_engine.service.runs.run_reader import codec_of
from stepwell_engine.service.worker.abandon import Abandoned
from stepwell_engine.service.worker.commits import commit_of, without_largest
from stepwell_engine.service.worker.dispatch import dispatch
from stepwell_engine.service.worker.lease import secure
from stepwell_engine.service.worker.letting_go import LettingGo
from stepwell_engine.service.worker.overflow import read_more
from stepwell_engine.service.worker.persistence import Persistence
from stepwell_engine.service.worker.place import Place
from stepwell_engine.service.worker.stopped import record_stopped
from stepwell_engine.service.worker.time_budget import TimeBudget
from stepwell_engine.service.worker.tools import Tools, run_attempt

CHILD_CALLS = 10 * limits.SECOND  # what starting or cancelling a child run may take


class LeasedRun:
    """A run whose lease this worker holds, until it lets go or loses it.

    `committed` is the journal as stored; `journal` the one in hand, ahead of it by `uncommitted`.
    """

    def __init__(
        self,
        tools: Tools,
        program: Program,
        head: Head,
        group: TaskGroup,
        time: TimeBudget,
        place: Place,
    ) -> None:
        """`head` as the claim returned it, with this worker's token.

        `place` is given back as soon as the run is no suspect any more.
        """
        self._tools = tools
        self._program = program
        self._group = group
        self._time = time
        self._persist = Persistence(tools.clock, tools.process.refusals, head.run_id, time.patience)
        self._token = head.lease_token or ""
        self._head = head
        self._codec = codec_of(head, program.keys)
        self._committed = self._codec.decode(head.journal)
        self._journal = self._committed
        self._uncommitted: list[UncommittedOutcome] = []
        # What this worker has begun and not settled yet. No store knows of it: whoever reads the
        # run takes the first attempts of its turn to be in flight, so each of them begins only
        # when the outcome that made room for it is committed.
        self._in_flight: set[StepKey] = set()
        # Filled by the threads of the group, emptied by the worker's own.
        self._completed: deque[UncommittedOutcome] = deque()
        self._overflow = NOTHING_READ  # what was read of the inbox's; it never changes
        self._waited = False  # for attempts in flight, since the head was last seen
        self._started: RunId | None = None  # a child that is not known to be waited for
        self._tried: Journal | None = None  # written, perhaps: the store did not answer
        self._place = place

    @property
    def head(self) -> Head:
        """The head as this worker last saw it."""
        return self._head

    @property
    def empty_handed(self) -> bool:
        """Whether nothing is lost if this worker lets go now."""
        return not (self._uncommitted or self._in_flight or self._completed)

    def go(self) -> None:
        """Advance the run until it parks or ends, its time is up, or the lease is lost."""
        if not self._head.live:  # cancelled between a claim and its unanswered repeat
            self._record_stopped(self._head)
            return
        while not self._tools.process.abandoned and self._advance_once():
            pass

    def abandon(self, ends: EpochMs) -> bool:
        """Let go of the run, from another thread; False if the store does not take that."""
        # In the order in which an outcome passes through them, and then into the head.
        in_hand = (*self._completed, *self._uncommitted)
        in_flight, tried, head = frozenset(self._in_flight), self._tried, self._head
        run = self._program, self._codec, head, tried, in_hand, in_flight, self._overflow
        return Abandoned(self._tools, *run).release(ends)

    def let_go(self) -> None:
        """A newer version writes to the run: record what is in hand, and release."""
        self._wait_for_all()
        let_go = LettingGo(self._tools, self._persist, self._program, self._head)
        let_go(self._committed, self._tried, self._uncommitted)

    def fail(self, reason: str) -> None:
        """Fail the run at once, for a structural reason: nothing is compensated."""
        decision = Decision(fail_run(self._journal, reason), Finish(Status.FAILED))
        self._commit(decision, self._tools.clock.now(), release=True)

    # --- one turn of the loop -----------------------------------------------------------------

    def _advance_once(self) -> bool:
        """One decision and what follows from it; whether to go on."""
        now = self._tools.clock.now()
        head, in_flight = self._head, frozenset(self._in_flight)
        if head.overdue(now):
            return self._time_out(now)
        decision = self._program.decide(
            head, self._journal, head.inbox, now, in_flight, self._overflow
        )
        match decision.next:
            case StartAttempts(attempts, until):
                return self._start_attempts(decision, attempts, until, now)
            case StartChild():
                return self._start_child(decision, decision.next, now)
            case CancelChild():
                return self._cancel_child(decision, decision.next, now)
            case ReadOverflow():
                return self._read_overflow(decision.journal.taken)
            case Park() | Finish():
                return self._commit(decision, now, release=True)
            case unknown:
                assert_never(unknown)

    def _time_out(self, now: EpochMs) -> bool:
        """The run's deadline is over: end it like anybody may, and record what is in flight."""
        run = about_run(self._head.run_id, self._head.project)
        time_out = partial(self._tools.runs.time_out, run.id, now, self._head.generation)
        written = self._persist(time_out)
        if isinstance(written, Done) and written.head.notify_pending:
            self._tools.dispatcher.hint(run)
        return self._refused(written.head)

    def _start_attempts(
        self, decision: Decision, wanted: tuple[Attempt, ...], until: int | None, now: int
    ) -> bool:
        beside = bool(self._in_flight)
        attempts = [one for one in wanted if self._time.allows(self._needed(one), now, beside)]
        if not self._has_place():
            attempts = []
        out_of_time = bool(wanted) and not attempts and not beside
        # An outcome in hand is recorded before anything new begins, unless the program holds it
        # back until the attempts in flight have completed.
        if self._unrecorded(decision) and not decision.hold:
            return self._commit(decision, now, release=out_of_time)
        if out_of_time:
            return self._commit(decision, now, release=True)
        if attempts and self._waited:
            # Nothing was written since: a cancel that came meanwhile must be seen before the next.
            head = self._read()
            self._waited = False
            if head is None or head.writes != self._head.writes:
                return self._refused(head)
        # Nothing to wait for but this one: no thread is worth it.
        alone = len(attempts) == 1 and not self._in_flight and until is None
        for attempt in attempts:
            needed, gate = self._needed(attempt), self._time.gate_expires_at
            started = self._secure(needed, gate)
            if started is None:
                return self._refused(self._read())
            deadline = deadline_of(started, needed, self._head.lease_expires_at, gate)
            begun = replace(attempt, deadline=deadline)
            if alone:
                self._completed.append(self._run_step(begun, started))
            else:
                self._in_flight.add(begun.step)
                self._group.start(partial(self._run_in_group, begun, started))
        if not alone:
            self._group.wait(None if until is None else max(0, until - self._tools.clock.now()))
            self._waited = True
        self._settle_completed()
        return True

    def _needed(self, attempt: Attempt) -> Ms:
        return attempt.timeout + (limits.CHILD_START if self._in_child else 0)

    def _has_place(self) -> bool:
        """Whether attempts of this run may begin here: those of a suspect only where one is alone.

        A run that is claimed anew with an outcome in hand may have become one.
        """
        return not self._head.suspect or self._place.taken or self._time.lane is Lane.ALONE

    def _run_in_group(self, attempt: Attempt, started: int) -> None:
        self._completed.append(self._run_step(attempt, started))

    def _run_step(self, attempt: Attempt, started: int) -> UncommittedOutcome:
        return run_attempt(self._tools, attempt, started, self._in_child)

    @property
    def _in_child(self) -> bool:
        return self._place.taken and self._head.suspect

    def _settle_completed(self) -> None:
        while self._completed:
            completed = self._completed[0]
            self._uncommitted.append(completed)  # first: it is in hand at every moment
            self._completed.popleft()
            self._in_flight.discard(completed.attempt.step)
            self._journal = self._program.settle(self._journal, completed)

    def _settled(self, journal: Journal) -> Journal:
        """The journal with every outcome in hand; what is recorded already is dropped."""
        for completed in self._uncommitted:
            journal = self._program.settle(journal, completed)
        return journal

    def _read_overflow(self, taken: Taken) -> bool:
        read = read_more(self._tools.runs, self._persist, self._head, taken, self._overflow)
        if read is None:
            return self._refused(self._read())
        self._overflow = read
        return True

    def _start_child(self, decision: Decision, start: StartChild, now: int) -> bool:
        if start.child is None:
            named = ChildNamed(start, self._tools.ids.run_id())
            journal = self._program.settle_child(decision.journal, named, now)
            return self._commit(replace(decision, journal=journal), now, release=False)
        if self._unrecorded(decision):
            return self._commit(decision, now, release=False)
        if self._secure(CHILD_CALLS) is None:
            return self._refused(self._read())
        failed = self._tools.children.start(self._head, start, start.child)
        outcome = ChildStarted(start) if failed is None else ChildNotStarted(start, failed)
        self._started = start.child if failed is None else None
        now = self._tools.clock.now()
        self._journal = self._program.settle_child(self._journal, outcome, now)
        return True

    def _cancel_child(self, decision: Decision, cancel: CancelChild, now: int) -> bool:
        if self._unrecorded(decision):
            return self._commit(decision, now, release=False)
        if self._secure(CHILD_CALLS) is None:
            return self._refused(self._read())
        # Cancelled at the time that was found to be over, whatever the clock says by now.
        ended = ChildEnded(cancel, self._tools.children.cancel(cancel.child, now))
        now = self._tools.clock.now()
        self._journal = self._program.settle_child(self._journal, ended, now)
        return True

    def _secure(self, needed: Ms, gate_expires_at: EpochMs | None = None) -> EpochMs | None:
        """The time now, if an attempt may begin that needs so long; the lease lasts, then."""
        lease = self._tools, self._persist, self._head
        self._head, started = secure(*lease, needed, gate_expires_at)
        return started

    def _read(self) -> Head | None:
        return self._persist(lambda: self._tools.runs.get(self._head.run_id))

    # --- commit -------------------------------------------------------------------------------

    def _unrecorded(self, decision: Decision) -> bool:
        return decision.journal is not self._committed

    def _commit(self, decision: Decision, now: int, release: bool) -> bool:
        """Write the decision; dispatch what follows from it; whether to go on."""
        head = self._head
        packed = self._codec.pack(decision.journal, self._token, head.writes)
        recorded = any(not isinstance(one.outcome, Deferred) for one in self._uncommitted)
        commit = commit_of(
            head, packed, decision, self._committed, now, release=release, recorded=recorded
        )
        self._tried = packed.journal
        try:
            written = self._persist(lambda: self._tools.runs.commit(commit))
        except Unstorable as error:
            return self._unstorable(error)
        self._tried = None
        if not isinstance(written, Done):
            return self._refused(written.head)
        self._take(written.head, packed.journal)
        self._dispatch(decision, now, release)
        return not release

    def _dispatch(self, decision: Decision, now: int, release: bool) -> None:
        head = self._head
        if self._started is not None:  # it may begin now that it is waited for
            self._tools.dispatcher.hint(about_run(self._started, head.project))
            self._started = None
        dispatch(self._tools, head, decision, now, release)

    def _take(self, head: Head, journal: Journal) -> None:
        """Go on from a head as it is stored now; what is in hand and not in it stays in hand."""
        self._head = head
        self._committed = journal
        self._journal = self._settled(journal)
        if self._journal is journal:
            self._uncommitted = []
        self._waited = False
        if not head.suspect:
            self._place.leave()

    # --- refusals -----------------------------------------------------------------------------

    def _refused(self, head: Head | None) -> bool:
        """Go on from a head that is not as this worker left it, if it still holds the lease."""
        if head is None:
            return False
        if head.lease_token != self._token:
            return self._claim_again(head)
        if head.commit_seq != self._head.commit_seq:
            # This worker's own write had succeeded although the store did not answer.
            self._take(head, self._codec.decode(head.journal))
        self._head = head  # with a new message, perhaps: decide again
        if head.stopped:
            self._record_stopped(head)
            return False
        return True

    def _claim_again(self, head: Head) -> bool:
        """The lease is lost, or a releasing write had succeeded; whether to go on with a new one.

        An outcome in hand that nobody recorded meanwhile is worth another claim, like anybody's. A
        token that is found is never taken for one's own.
        """
        now = self._tools.clock.now()
        self._uncommitted = [
            one for one in self._uncommitted if not isinstance(one.outcome, Deferred)
        ]
        over = head.lease_token is None or head.lease_expires_at + limits.CLOCK_MARGIN < now
        if not head.live or not over:
            return False
        if head.generation != self._head.generation:  # another one tries it anew
            return False
        if self._settled(journal := self._codec.decode(head.journal)) is journal:
            return False
        token = self._tools.ids.token()
        claim = partial(
            self._tools.runs.claim, head.run_id, token, now, now + limits.LEASE, self._time.lane
        )

        def take(claimed: Head) -> None:
            self._token = token
            self._take(claimed, self._codec.decode(claimed.journal))

        claimed = self._tools.process.claim(token, lambda: self._persist(claim), take)
        return isinstance(claimed, Done)

    def _unstorable(self, error: Unstorable) -> bool:
        """Fail the attempt whose outcome cannot be stored, with the true reason."""
        self._uncommitted = without_largest(self._uncommitted, error)
        self._journal = self._settled(self._committed)
        return True

    def _record_stopped(self, head: Head) -> None:
        """The run was ended from outside: record what is in flight, move nothing."""
        self._wait_for_all()
        run = self._program, self._codec, head, self._committed, self._uncommitted
        record_stopped(self._tools, self._persist, *run)

    def _wait_for_all(self) -> None:
        while self._in_flight:
            self._group.wait(None)
            self._settle_completed()
