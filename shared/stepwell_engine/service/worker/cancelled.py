"""The last write of a worker whose run was cancelled meanwhile: what was in flight, no move."""

from collections.abc import Sequence
from functools import partial

from stepwell_engine.core.run.attempt import UncommittedOutcome
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.journal_codec import JournalCodec
from stepwell_engine.core.run.program import Program
from stepwell_engine.errors import Unstorable
from stepwell_engine.service.worker.commits import cancelled_commit_of, without_largest
from stepwell_engine.service.worker.persistence import Persistence
from stepwell_engine.service.worker.tools import Tools


def record_cancelled(
    tools: Tools,
    persist: Persistence,
    program: Program,
    codec: JournalCodec,
    head: Head,
    stored: Journal,
    outcomes: Sequence[UncommittedOutcome],
) -> None:
    """Record the outcomes of what was in flight, close the run's journal, and release.

    `stored` is the journal as it was last.
    """
    at = head.ended_at or tools.clock.now()
    # The journal names the children no more once it is closed.
    persist(partial(tools.children.cascade, head))
    while True:
        journal = stored
        for completed in outcomes:
            journal = program.settle_cancelled(journal, completed, at)
        begun, journal = journal, program.close(journal, at)
        packed = codec.pack(journal, head.lease_token or "", head.writes)
        commit = cancelled_commit_of(head, packed)
        try:
            persist(partial(tools.runs.commit, commit))
        except Unstorable as error:
            outcomes = without_largest(outcomes, error)
        else:
            tools.children.leave_unstarted(head, begun)
            return
