"""Defects of inboxes and their overflow."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from stepwell_engine.core.run.decision import Decision
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.overflow import Overflow, Taken
from stepwell_engine.ports import Commit, Delivered, Done, Runs, Written
from stepwell_engine.service.worker.leased_run import LeasedRun
from tests.sim.links import Store
from tests.sim.mutation import Mutation, leased_run, patch, store
from tests.sim.ports import SimRuns
from tests.sim.world import Engine

_DELIVERY = "stepwell_engine.adapters.delivery."
_TAKEN = "stepwell_engine.core.run.overflow.Taken."


class IntoTheHeadInAnyCase(Store):
    def _overflow_is_empty(self, head: Head) -> bool:
        return True


def _fits_in_any_case(head: Head, *_: object) -> bool:
    return len(head.inbox) < 1


def _mark_alone(taken: Taken, numbers: Iterable[int]) -> Taken:
    return Taken(max([taken.mark, *numbers]))


def _nothing_is_kept(taken: Taken, _numbers: Iterable[int]) -> Taken:
    return taken


class DeletesWhatIsTaken(SimRuns):
    def commit(self, commit: Commit) -> Written:
        written = super().commit(commit)
        if isinstance(written, Done):
            for number in commit.taken:
                self._delete(commit.run_id, number)
        return written

    def _delete(self, run_id: str, number: int) -> None:
        slots = self._store.slots
        self._links.call("delete", run_id, lambda: slots.pop((run_id, number), None))


class ForgetsWhatIsTaken(LeasedRun):
    def _commit(self, decision: Decision, now: int, release: bool) -> bool:
        goes_on = super()._commit(decision, now, release)
        left = self._overflow.messages.items()
        kept = {number: one for number, one in left if number not in decision.taken}
        self._overflow = replace(self._overflow, messages=kept)
        return goes_on


def _whatever_is_there(
    runs: Runs, _persist: Any, head: Head, taken: Taken, overflow: Overflow
) -> Overflow:
    first, last = overflow.page(taken, head.overflow_last) or (1, 0)
    return overflow.read(last, runs.overflow(head.run_id, first, last))


class TakesANewerHead(LeasedRun):
    def _read_overflow(self, taken: Taken) -> bool:
        goes_on, head = super()._read_overflow(taken), self._read()
        if goes_on and head is not None and head.commit_seq == self._head.commit_seq:
            if self._overflow.read_to == self._head.overflow_last:
                self._overflow = replace(self._overflow, read_to=head.overflow_last)
            self._head = head
        return goes_on


def _known_is_delivered(_delivery: Any, head: Head, entry: Any) -> Delivered:
    return Delivered(head, entry.at)


class SetsTheCount(Store):
    """A take sets the count to what the worker knew of it, less what it takes."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, int] = {}

    def _know(self, written: Written) -> Written:
        if isinstance(written, Done):
            self._known[written.head.run_id] = written.head.overflow_count
        return written

    def claim(self, *args: Any) -> Written:
        return self._know(super().claim(*args))

    def extend(self, *args: Any) -> Written:
        return self._know(super().extend(*args))

    def commit(self, commit: Commit) -> Written:
        return self._know(super().commit(commit))

    def _committed(self, head: Head, commit: Commit) -> Head:
        after = super()._committed(head, commit)
        if not commit.taken:
            return after
        return replace(after, overflow_count=self._known[head.run_id] - len(commit.taken))


class CountsWhatIsVoid(Store):
    def make_void(self, run_id: str, number: int) -> None:
        """It is not."""

    def count_void(self, run_id: str, number: int) -> Written:
        return self.count(run_id, number, "", 0, False, self._heads[run_id].generation)


INBOX: tuple[Mutation, ...] = (
    Mutation(
        "into the head beside an overflow",
        frozenset({6}),
        Engine(store=IntoTheHeadInAnyCase, patches=((_DELIVERY + "_fits", _fits_in_any_case),)),
    ),
    patch("a low-water mark alone", _TAKEN + "plus", _mark_alone, 6),
    Mutation(
        "deletion as the only memory",
        frozenset({6}),
        Engine(
            runs=DeletesWhatIsTaken,
            leased_run=ForgetsWhatIsTaken,
            patches=(
                (_TAKEN + "plus", _nothing_is_kept),
                ("stepwell_engine.service.worker.leased_run.read_more", _whatever_is_there),
            ),
        ),
    ),
    leased_run("the overflow is read before the head", TakesANewerHead, 3, 6),
    patch("a key counts before its number", _DELIVERY + "_Delivery._known", _known_is_delivered, 6),
    patch(
        "quiet to a run that waits for it",
        "stepwell_engine.core.run.head.Head.wakes_for",
        lambda _head, _signal: False,
        3,
    ),
    store("a void slot counts", CountsWhatIsVoid, 6),
    store("a take sets the count", SetsTheCount, 3, 6),
)
