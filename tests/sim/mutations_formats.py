"""Defects of a version of the engine that shares its store with a newer one."""

from dataclasses import replace
from typing import Any

from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal_codec import JournalCodec
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.ports import Commit, Refused, Written
from stepwell_engine.service.worker.leased_run import LeasedRun
from tests.sim.links import Store
from tests.sim.mutation import Mutation, leased_run, patch, store

_PACK = JournalCodec.pack


class ClaimsWhatItCannotRead(Store):
    def claim(
        self, run_id: str, lease_token: str, now: int, until: int, lane: Lane = Lane.HOST
    ) -> Written:
        head = self._heads.get(run_id)
        if head is None or not self._may_claim(head, now, lane):
            return super().claim(run_id, lease_token, now, until, lane)
        return self._put(self._claimed(head, lease_token, now, until, lane))


class CommitsWhatItCannotRead(Store):
    def commit(self, commit: Commit) -> Written:
        head = self._heads.get(commit.run_id)
        if head is None or not self._may_commit(head, commit):
            return Refused(head)
        return self._put(self._committed(head, commit), commit.blobs)


class CommitLowersTheFormat(Store):
    def _committed(self, head: Head, commit: Commit) -> Head:
        return replace(super()._committed(head, commit), format=commit.format)


class KeepsWhatItCannotRead(LeasedRun):
    def let_go(self) -> None:
        """The lease runs out."""


class LetsGoOfAttemptsInFlight(LeasedRun):
    def let_go(self) -> None:
        self._in_flight.clear()
        super().let_go()


class LetsGoEmptyHanded(LeasedRun):
    def let_go(self) -> None:
        self._wait_for_all()
        self._uncommitted = []
        super().let_go()


def _as_if_decided(codec: JournalCodec, *given: Any, decided: bool = True) -> Any:
    return _PACK(codec, *given)


FORMATS: tuple[Mutation, ...] = (
    store("a claim ignores the format", ClaimsWhatItCannotRead, 1),
    store("a commit ignores the format", CommitsWhatItCannotRead, 1),
    store("a commit lowers the format", CommitLowersTheFormat, 1),
    leased_run("a newer run is not let go of", KeepsWhatItCannotRead, 4),
    leased_run(
        "a newer run is let go of before its attempts are over", LetsGoOfAttemptsInFlight, 4
    ),
    leased_run("a newer run is let go of without its outcomes", LetsGoEmptyHanded, 5),
    patch(
        "what is let go of has moved to a page",
        "stepwell_engine.core.run.journal_codec.JournalCodec.pack",
        _as_if_decided,
        1,
        2,
        9,
    ),
)
