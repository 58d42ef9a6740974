"""Letting go of a run that a newer version wrote to, with what is in hand recorded."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Final, Literal

from stepwell_engine import limits
from stepwell_engine.core.run.attempt import Deferred, UncommittedOutcome
from stepwell_engine.core.run.head import Head, wake_time
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.program import Program
from stepwell_engine.core.run.status import Status
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.core.values.units import EpochMs
from stepwell_engine.errors import NewerFormat
from stepwell_engine.ports import KEEP, Commit
from stepwell_engine.service.runs.run_reader import codec_of
from stepwell_engine.service.worker.persistence import Persistence
from stepwell_engine.service.worker.tools import Tools

_EXPECTATIONS: Final[Sequence[Literal["live", "stopped"]]] = ("live", "stopped")


@dataclass(frozen=True, slots=True)
class LettingGo:
    """What it takes. `head` is the head as its holder last saw it; `names` tell its blobs apart."""

    tools: Tools
    persist: Persistence
    program: Program
    head: Head
    names: str = "~"

    def __call__(
        self, stored: Journal, tried: Journal | None, outcomes: Sequence[UncommittedOutcome]
    ) -> bool:
        """Record the outcomes in hand and release; whether that was possible.

        `stored` is the journal as it was last, `tried` one whose write was not answered. A live run
        is released; one that was stopped meanwhile keeps its lease, for whoever closes it. It is
        ready at once if its own head is newer, which older versions leave alone: else they would
        take it again and again.
        """
        ready = self._is_newer()
        # The later place first: a write that succeeds unanswered must not have others build on it.
        places = [(0, stored)] if tried is None else [(1, tried), (0, stored)]
        tries = product(places, _EXPECTATIONS)
        for number, ((place, journal), expect) in enumerate(tries):
            commit = self._commit(place, journal, outcomes, expect, ready, number)
            if self.persist(partial(self.tools.runs.let_go, commit)):
                if ready and expect == "live":
                    run = about_run(self.head.run_id, self.head.project)
                    self.tools.dispatcher.hint(run)
                return True
        return False

    def _is_newer(self) -> bool:
        try:
            self.persist(partial(self.tools.runs.get, self.head.run_id))
        except NewerFormat:
            return True
        return False

    def _commit(
        self,
        place: int,
        stored: Journal,
        outcomes: Sequence[UncommittedOutcome],
        expect: Literal["live", "stopped"],
        ready: bool,
        number: int,
    ) -> Commit:
        head, now = self.head, self.tools.clock.now()
        token = head.lease_token or ""
        journal = stored
        for one in outcomes:
            if expect == "live":
                journal = self.program.settle(journal, one)
            else:
                journal = self.program.settle_cancelled(journal, one, now)
        # Each try has names of its own for its blobs: an earlier one may have succeeded.
        codec = codec_of(head, self.program.keys)
        names = f"{token}{self.names}{number}"
        packed = codec.pack(journal, names, head.writes, decided=False)
        changed, release = journal is not stored, expect == "live"
        moved = journal.place != stored.place
        later: EpochMs = now if ready else now + limits.LEASE
        return Commit(
            run_id=head.run_id,
            lease_token=token,
            commit_seq=head.commit_seq + place,
            journal=packed.data if changed or place else head.journal,
            expect=expect,
            status=Status.PENDING if changed and release else KEEP,
            ready_at=(0 if ready else later) if release else KEEP,
            wake_at=wake_time(later, head.deadline) if release else KEEP,
            release=release,
            progress=moved,
            recorded=moved or any(not isinstance(one.outcome, Deferred) for one in outcomes),
            blobs=packed.blobs,
            format=packed.format,
        )
