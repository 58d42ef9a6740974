"""Advancing a run: claim, then decide, act, settle and commit for as long as it can go on.

One worker at a time holds a run's lease. Whatever it wants to say to others (hints) goes out
after the write that makes it true.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from stepwell_engine import limits
from stepwell_engine.core import journal as journals
from stepwell_engine.core.decide import Decision, Finish, Park, Perform, decide
from stepwell_engine.core.definition import Definition, Kind
from stepwell_engine.core.journal import Failure, Journal
from stepwell_engine.core.outcome import Act, Failed, Outcome
from stepwell_engine.core.run import Head, Status
from stepwell_engine.core.settle import settle, settle_cancelled, stop
from stepwell_engine.errors import NewerFormat, StepwellError
from stepwell_engine.ports import Clock, Commit, Dispatcher, Done, Ids, Performer, Runs
from stepwell_engine.service.repeat import repeat

log = logging.getLogger(__name__)


class Definitions(Protocol):
    """Where a worker finds the version that a run is pinned to."""

    def load(self, project: str, workflow: str, version: int) -> Definition:
        """NewerFormat if this version cannot read it; Problem or ValueError if it is no good."""
        ...


@dataclass(frozen=True, slots=True)
class Time:
    """How long a worker may go on: until `ends` (ms since the epoch), see Advance.run."""

    ends: int
    hard: bool

    def allows(self, act: Act, now: int) -> bool:
        """Whether the act may begin now."""
        return now < self.ends and not (self.hard and now + act.timeout > self.ends)


@dataclass(frozen=True, slots=True)
class Tried:
    """An outcome in hand that no commit carries yet."""

    act: Act
    outcome: Outcome
    started: int
    finished: int


@dataclass(frozen=True, slots=True)
class Held:
    """A run whose lease this worker holds.

    `committed` is the journal as stored; `journal` the one in hand, ahead of it by `tried`.
    """

    definition: Definition
    token: str
    head: Head
    committed: Journal
    journal: Journal
    tried: Tried | None = None


class Advance:
    """Advances runs. Safe to call for any run, at any time, from any number of workers."""

    def __init__(
        self,
        runs: Runs,
        definitions: Definitions,
        performers: Mapping[Kind, Performer],
        dispatcher: Dispatcher,
        clock: Clock,
        ids: Ids,
        lease: int = limits.LEASE,
    ) -> None:
        """`lease` in ms."""
        self._runs = runs
        self._definitions = definitions
        self._performers = performers
        self._dispatcher = dispatcher
        self._clock = clock
        self._ids = ids
        self._lease = lease

    def run(self, run_id: str, project: str, budget: int, *, hard: bool = False) -> None:
        """Advance one run until it parks or ends, or `budget` (ms) is used up.

        An act begun within the budget may end after it, unless the budget is `hard`: then none is
        begun that could, since this worker may be gone by then. (Extending the lease of a long
        act, and recording its outcome, take the time that two calls of the store take.)
        Raises Unavailable when the store does not answer; the hint is then worth repeating.
        """
        time = Time(self._clock.now() + budget, hard)
        head = self._claim(run_id, project)
        if head is None or head.token is None:
            return
        try:
            definition = self._definitions.load(head.project, head.workflow, head.version)
        except NewerFormat as error:
            self._leave(head, head.token, error)
            return
        except (StepwellError, ValueError) as error:
            self._fail(head, head.token, f"version {head.version} cannot be loaded: {error}")
            return
        journal = journals.decode(head.journal, head.created_at)
        held = Held(definition, head.token, head, journal, journal)
        if not head.live:  # cancelled between a claim and its unanswered repeat
            self._record_cancelled(held, head)
            return
        turn: Held | None = held
        while turn is not None:
            turn = self._step(turn, time)

    # --- claim --------------------------------------------------------------------------------

    def _claim(self, run_id: str, project: str) -> Head | None:
        """The head with the lease taken, or None if there is nothing to do now."""
        token = self._ids.token()
        while True:
            now = self._clock.now()
            claim = partial(self._runs.claim, run_id, token, now, now + self._lease)
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
                self._close(head)
                return None
            if head.token is not None and head.until + limits.CLOCK_MARGIN >= now:
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
        journal = journals.decode(head.journal, head.created_at)
        try:
            definition = self._definitions.load(head.project, head.workflow, head.version)
        except (StepwellError, ValueError):
            log.exception("run %s: its definition cannot be loaded", head.run_id)
        else:
            journal = stop(definition, journal, head.ended_at or now)
        data = journals.encode(journal, head.created_at)
        self._runs.close(head.run_id, head.token, head.commit, data)

    # --- one turn of the loop -----------------------------------------------------------------

    def _step(self, held: Held, time: Time) -> Held | None:
        now = self._clock.now()
        decision = decide(held.definition, held.head, held.journal, held.head.mail, now)
        recorded = decision.journal is held.committed
        if isinstance(decision.next, Perform):
            act = decision.next.act
            out_of_time = not time.allows(act, now)
            if recorded and not out_of_time:
                return self._act(held, act)
            return self._commit(held, decision, now, release=out_of_time)
        return self._commit(held, decision, now, release=True)

    def _act(self, held: Held, act: Act) -> Held | None:
        """Try the step, within a time that ends before the lease does."""
        while True:
            now = self._clock.now()
            if now + act.timeout + limits.CLOCK_MARGIN < held.head.until:
                break
            until = now + max(self._lease, act.timeout + 3 * limits.CLOCK_MARGIN)
            extend = partial(self._runs.extend, act.run_id, held.token, until, until)
            extended = repeat(self._clock, extend)
            if not isinstance(extended, Done):
                return self._refused(held, extended.head)
            held = replace(held, head=extended.head)
        try:
            outcome = self._performers[act.kind].perform(act)
        except Exception as error:  # a performer's own defect must not stop the run's life
            log.exception("run %s: step %s", act.run_id, act.step)
            outcome = Failed(f"the engine failed to run this step: {error!r}")
        finished = self._clock.now()
        journal = settle(held.definition, held.journal, act, outcome, now, finished)
        return replace(held, journal=journal, tried=Tried(act, outcome, now, finished))

    def _commit(self, held: Held, decision: Decision, now: int, release: bool) -> Held | None:
        """Write the decision; dispatch what follows from it; go on if the lease was kept."""
        head = held.head
        packed = journals.pack(decision.journal, head.created_at, held.token, head.writes)
        commit = Commit(
            run_id=head.run_id,
            token=held.token,
            commit=head.commit,
            journal=packed.data,
            revision=head.revision if decision.absent else None,
            release=release,
            progress=decision.journal is not held.committed,
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
                commit = replace(commit, status=status, ended_at=now, wake_at=None)
            case Perform() if release:
                commit = replace(commit, status=Status.PENDING, ready_at=0, wake_at=now)
            case Perform():
                commit = replace(commit, status=Status.PENDING)
        written = repeat(self._clock, lambda: self._runs.commit(commit))
        if not isinstance(written, Done):
            return self._refused(held, written.head)
        self._dispatch(head, decision, now, release)
        if release:
            return None
        return Held(held.definition, held.token, written.head, packed.journal, packed.journal)

    def _dispatch(self, head: Head, decision: Decision, now: int, release: bool) -> None:
        if isinstance(decision.next, Park):
            delay = max(0, decision.next.ready_at - now)
            if delay <= limits.MAX_HINT_DELAY:
                self._dispatcher.hint(head.run_id, head.project, delay)
        elif isinstance(decision.next, Perform) and release:
            self._dispatcher.hint(head.run_id, head.project)

    # --- refusals -----------------------------------------------------------------------------

    def _refused(self, held: Held, head: Head | None) -> Held | None:
        """Go on from the head that refused a write, if this worker still holds it."""
        if head is None or head.token != held.token:
            return None  # the lease is lost, or a releasing write of this worker had succeeded
        if head.status is Status.CANCELLED:
            if head.commit == held.head.commit:
                self._record_cancelled(held, head)
                return None
            held = self._reread(held, head)
            self._record_cancelled(held, head)
            return None
        if head.commit == held.head.commit:
            return replace(held, head=head)  # new mail: decide again
        return self._reread(held, head)

    def _reread(self, held: Held, head: Head) -> Held:
        """This worker's own write had succeeded although the store did not answer."""
        journal = journals.decode(head.journal, head.created_at)
        return Held(held.definition, held.token, head, journal, journal)

    def _record_cancelled(self, held: Held, head: Head) -> None:
        """The run was cancelled meanwhile: record the step in flight, move nothing."""
        tried = held.tried
        if tried is None:
            journal = stop(held.definition, held.committed, head.ended_at or self._clock.now())
        else:
            journal = settle_cancelled(
                held.definition,
                held.committed,
                tried.act,
                tried.outcome,
                tried.started,
                tried.finished,
            )
        self._let_go(head, held.token, journal, expect_cancelled=True)

    def _leave(self, head: Head, token: str, error: NewerFormat) -> None:
        """Put back a run that this version cannot read; a newer worker will take it."""
        log.warning("run %s: %s", head.run_id, error)
        later = self._clock.now() + self._lease
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

    def _fail(self, head: Head, token: str, message: str) -> None:
        """End a run for a structural reason."""
        journal = journals.decode(head.journal, head.created_at)
        failed = replace(journal, failure=Failure(message, None, None))
        held = Held(
            Definition(head.project, head.workflow, head.version, ()), token, head, journal, failed
        )
        self._commit(held, Decision(failed, Finish(Status.FAILED)), self._clock.now(), True)

    def _let_go(self, head: Head, token: str, journal: Journal, expect_cancelled: bool) -> None:
        packed = journals.pack(journal, head.created_at, token, head.writes)
        commit = Commit(
            run_id=head.run_id,
            token=token,
            commit=head.commit,
            journal=packed.data,
            expect="cancelled" if expect_cancelled else "live",
            release=True,
            progress=True,
            wake_at=None,
            blobs=packed.blobs,
        )
        repeat(self._clock, lambda: self._runs.commit(commit))
