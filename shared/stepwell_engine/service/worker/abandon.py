"""Letting go of a run from outside its worker, when the process ends without waiting for it."""

import logging
from collections.abc import Sequence, Set
from functools import partial

from stepwell_engine.core.run.attempt import Deferred, UncommittedOutcome
from stepwell_engine.core.run.decision import Decision, StartAttempts
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal_codec import JournalCodec
from stepwell_engine.core.run.keys import StepKey
from stepwell_engine.core.run.overflow import Overflow
from stepwell_engine.core.run.program import Program
from stepwell_engine.core.values.units import EpochMs
from stepwell_engine.errors import StoreError
from stepwell_engine.ports import Commit, Done
from stepwell_engine.service.worker.commits import commit_of, release_of
from stepwell_engine.service.worker.persistence import Persistence
from stepwell_engine.service.worker.tools import Tools

log = logging.getLogger(__name__)


def release_abandoned(
    tools: Tools,
    program: Program,
    codec: JournalCodec,
    head: Head,
    in_hand: Sequence[UncommittedOutcome],
    in_flight: Set[StepKey],
    overflow: Overflow,
    ends: EpochMs,
) -> bool:
    """Release the run with the outcomes in hand; nobody counts as lost. False: the store refused.

    The worker may be writing meanwhile: whoever comes second finds that, and goes on from there.
    """
    persist = Persistence(tools.clock, tools.process.refusals, head.run_id, ends)
    outcomes = [one for one in in_hand if not isinstance(one.outcome, Deferred)]

    def commit(head: Head) -> Commit:
        now = tools.clock.now()
        stored = codec.decode(head.journal)
        journal = stored
        for one in outcomes:
            journal = program.settle(journal, one)
        if journal is stored:
            return release_of(head, now)
        flying = frozenset(in_flight) - {one.attempt.step for one in outcomes}
        if program.decide(head, journal, head.inbox, now, flying, overflow).hold:
            return release_of(head, now)  # recorded only together with its siblings'
        decision = Decision(journal, StartAttempts(()))  # the next worker decides
        packed = codec.pack(journal, head.lease_token or "", head.writes)
        return commit_of(head, packed, decision, stored, now, release=True, recorded=True)

    token = head.lease_token
    try:
        while head.live and head.lease_token == token is not None:
            written = persist(partial(tools.runs.commit, commit(head)))
            if isinstance(written, Done) or written.head is None:
                return True
            head = written.head
    except StoreError as error:
        log.warning("run %s: its lease runs out: %s", head.run_id, error)
        return False
    return True
