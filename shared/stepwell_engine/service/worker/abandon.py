"""Letting go of runs from outside their workers, when the process ends without waiting for them."""

import logging
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Final

from stepwell_engine.core.run.attempt import Deferred, UncommittedOutcome
from stepwell_engine.core.run.decision import Decision, ReadOverflow, StartAttempts
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.journal_codec import JournalCodec
from stepwell_engine.core.run.keys import StepKey
from stepwell_engine.core.run.overflow import Overflow
from stepwell_engine.core.run.program import Program
from stepwell_engine.core.values.units import EpochMs, Ms
from stepwell_engine.errors import NewerFormat, StoreError
from stepwell_engine.ports import Commit, Done
from stepwell_engine.service.worker.commits import commit_of, release_of
from stepwell_engine.service.worker.letting_go import LettingGo
from stepwell_engine.service.worker.persistence import Persistence
from stepwell_engine.service.worker.stopped import record_stopped
from stepwell_engine.service.worker.tools import Tools

log = logging.getLogger(__name__)

LOOK: Final = 20  # ms between two looks at whether the store has answered a claim
_NAMES: Final = "~~"  # of the blobs: the worker may be writing others under its token


def abandon_all(tools: Tools, within: Ms) -> int:
    """Let go of all runs that the workers of the process hold; of how many that did not succeed.

    One whose claim is not answered yet may be held in a moment.
    """
    ends = tools.clock.now() + within
    while tools.process.claims and tools.clock.now() < ends:
        tools.clock.sleep(LOOK)
    left = len(tools.process.claims)
    return left + sum(not run.abandon(ends) for run in list(tools.process.held.values()))


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run that was claimed, and that its worker has not begun to advance."""

    tools: Tools
    head: Head

    def abandon(self, ends: EpochMs) -> bool:
        """Let go of it as it is; False if the store does not take that by `ends`."""
        clock, refusals = self.tools.clock, self.tools.process.refusals
        persist = Persistence(clock, refusals, self.head.run_id, ends)
        try:
            persist(partial(self.tools.runs.let_go, release_of(self.head, clock.now())))
        except StoreError as error:
            log.warning("run %s: its lease runs out: %s", self.head.run_id, error)
            return False
        return True


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A run that its worker is advancing. `head` is as the worker last saw it, `tried` a journal
    whose write was not answered; `outcomes` are in hand.

    The worker may be writing meanwhile: whoever comes second finds that, and goes on from there.
    """

    tools: Tools
    program: Program
    codec: JournalCodec
    head: Head
    tried: Journal | None
    outcomes: Sequence[UncommittedOutcome]
    in_flight: Set[StepKey]
    overflow: Overflow

    def release(self, ends: EpochMs) -> bool:
        """Let go of it with the outcomes in hand; False if the store does not take that by `ends`.

        Nobody counts as lost.
        """
        tools, head, token = self.tools, self.head, self.head.lease_token
        persist = Persistence(tools.clock, tools.process.refusals, head.run_id, ends)
        try:
            while head.live and head.lease_token == token is not None:
                written = persist(partial(tools.runs.commit, self._commit(head)))
                if isinstance(written, Done) or written.head is None:
                    return True
                head = written.head
            if head.stopped and head.lease_token == token is not None:
                self._record_stopped(head, persist)
        except NewerFormat:
            return self._let_go(head, persist)
        except StoreError as error:
            log.warning("run %s: its lease runs out: %s", head.run_id, error)
            return False
        return True

    def _record_stopped(self, head: Head, persist: Persistence) -> None:
        outcomes = [one for one in self.outcomes if not isinstance(one.outcome, Deferred)]
        run = self.program, self.codec, head, self.codec.decode(head.journal), outcomes
        record_stopped(self.tools, persist, *run, _NAMES)

    def _commit(self, head: Head) -> Commit:
        now = self.tools.clock.now()
        stored = self.codec.decode(head.journal)
        _, decision = self._settled(head, stored)
        if decision is None:
            return release_of(head, now)
        packed = self.codec.pack(decision.journal, f"{head.lease_token}{_NAMES}", head.writes)
        return commit_of(head, packed, decision, stored, now, release=True, recorded=True)

    def _settled(
        self, head: Head, stored: Journal
    ) -> tuple[Sequence[UncommittedOutcome], Decision | None]:
        """The outcomes that can be recorded now, and what the run does next with them; None, if
        there are none.

        One that may be recorded only together with those of its siblings in flight is left out.
        """
        in_hand = [one for one in self.outcomes if not isinstance(one.outcome, Deferred)]
        in_flight = frozenset(self.in_flight) - {one.attempt.step for one in in_hand}
        now = self.tools.clock.now()
        journal, recorded, decision = stored, list[UncommittedOutcome](), None
        for one in in_hand:
            settled = self.program.settle(journal, one)
            if settled is journal:
                continue
            found = self.program.decide(head, settled, head.inbox, now, in_flight, self.overflow)
            if not found.hold:
                journal, decision = settled, found
                recorded.append(one)
        if decision is not None and isinstance(decision.next, ReadOverflow):
            decision = Decision(journal, StartAttempts(()))  # the next worker decides
        return recorded, decision

    def _let_go(self, head: Head, persist: Persistence) -> bool:
        """A newer version writes to the run."""
        stored = self.codec.decode(head.journal)
        outcomes, _ = self._settled(head, stored)
        let_go = LettingGo(self.tools, persist, self.program, head, _NAMES)
        try:
            return let_go(stored, self.tried, outcomes)
        except StoreError as error:
            log.warning("run %s: its lease runs out: %s", head.run_id, error)
            return False
