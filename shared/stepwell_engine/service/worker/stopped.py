"""Recording what was in flight when a run was ended from outside: nothing moves any more."""

from collections.abc import Sequence
from functools import partial

from stepwell_engine.core.run.attempt import UncommittedOutcome
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.journal_codec import JournalCodec
from stepwell_engine.core.run.program import Program
from stepwell_engine.errors import Unstorable
from stepwell_engine.service.worker.commits import stopped_commit_of, without_largest
from stepwell_engine.service.worker.persistence import Persistence
from stepwell_engine.service.worker.tools import Tools


def record_stopped(
    tools: Tools,
    persist: Persistence,
    program: Program,
    codec: JournalCodec,
    head: Head,
    stored: Journal,
    outcomes: Sequence[UncommittedOutcome],
    names: str = "",
) -> None:
    """Record the outcomes in hand of a run that was cancelled or timed out, close it, release.

    `stored` is its journal; `names` tell the blobs from those of other writes. What can never be
    stored fails its step.
    """
    at = head.ended_at or tools.clock.now()
    # The journal names the children no more once it is closed.
    persist(lambda: tools.children.cascade(head))
    while True:
        begun = stored
        for completed in outcomes:
            begun = program.settle_cancelled(begun, completed, at)
        names_of = f"{head.lease_token}{names}"
        packed = codec.pack(program.close(begun, at), names_of, head.writes)
        commit = stopped_commit_of(head, packed)
        try:
            persist(partial(tools.runs.commit, commit))
        except Unstorable as error:
            outcomes = without_largest(outcomes, error)
        else:
            break
    tools.children.leave_unstarted(head, begun)
