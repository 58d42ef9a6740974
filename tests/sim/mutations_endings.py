"""Defects of deadlines, of what revives a run, and of places under a concurrency limit."""

from dataclasses import replace
from typing import Any

from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.status import REVIVABLE, Status
from stepwell_engine.ports import Revival
from stepwell_engine.service.worker.advance import Advance
from stepwell_engine.service.worker.leased_run import LeasedRun
from tests.sim.links import Store
from tests.sim.mutation import Mutation, advance, leased_run, patch, store

_DELIVERY = "stepwell_engine.adapters.delivery._Delivery."
_WORKER = "stepwell_engine.service.worker."


class ClaimsTheLate(Store):
    def _is_late(self, head: Head, now: int) -> bool:
        return False


class AnyGeneration(Store):
    def _is_of(self, head: Head, generation: int) -> bool:
        return True


class ForgetsThatItTold(Store):
    def _is_told(self, head: Head) -> bool:
        return False


class HasAlwaysTold(Store):
    def _is_told(self, head: Head) -> bool:
        return head.parent is not None


class RevivesTheHeld(Store):
    def _may_revive(self, head: Head, revival: Revival) -> bool:
        return head.status in REVIVABLE and head.generation == revival.generation


class CountsForAnyGeneration(Store):
    def _may_count_for(self, head: Head, generation: int) -> bool:
        return True


class RevivesWithItsLease(Store):
    def _revived(self, head: Head, revival: Revival) -> Head:
        return replace(super()._revived(head, revival), lease_token=head.lease_token)


class RevivesWithItsLosses(Store):
    def _revived(self, head: Head, revival: Revival) -> Head:
        return replace(super()._revived(head, revival), lost_leases=head.lost_leases)


class NobodyTimesOut(Advance):
    def _settle_over(self, head: Head, now: int) -> None:
        if not head.live:
            super()._settle_over(head, now)


class ClosesTheCancelledAlone(Advance):
    def _close(self, head: Head) -> None:
        if head.status is not Status.TIMED_OUT:
            super()._close(head)


class KnowsNoGate(Advance):
    def run(self, *args: Any, **options: Any) -> None:
        options["gate_expires_at"] = None
        super().run(*args, **options)


class GoesOnAfterTheDeadline(LeasedRun):
    def _advance_once(self) -> bool:
        self._head = replace(self._head, deadline=None)
        return super()._advance_once()


class RecordsForAnotherGeneration(LeasedRun):
    def _claim_again(self, head: Head) -> bool:
        self._head = replace(self._head, generation=head.generation)
        return super()._claim_again(head)


def _without_deadline(at: int, _deadline: int | None) -> int:
    return at


ENDINGS: tuple[Mutation, ...] = (
    store("a claim after the deadline", ClaimsTheLate, 10),
    advance("nobody times out", NobodyTimesOut, 3),
    leased_run("goes on after the deadline", GoesOnAfterTheDeadline, 3, 10),
    advance("only the cancelled are closed", ClosesTheCancelledAlone, 3),
    patch("a park past the deadline", f"{_WORKER}commits.wake_time", _without_deadline, 3),
    patch("a lease past the deadline", f"{_WORKER}lease.wake_time", _without_deadline, 3),
    patch(
        "an overdue claim past the deadline",
        "stepwell_engine.adapters.memory.runs.wake_time",
        _without_deadline,
        3,
    ),
    patch("no hint at the deadline", f"{_WORKER}dispatch.wake_time", _without_deadline, 3),
    patch("a hint before the deadline", f"{_WORKER}advance.wake_time", _without_deadline, 3),
    store("what comes late ends another generation", AnyGeneration, 3, 10),
    store("a revival forgets that the parent was told", ForgetsThatItTold, 3),
    store("a revival takes the parent for told", HasAlwaysTold, 3),
    patch(
        "each end owes the parent",
        "stepwell_engine.core.run.head.Head.owes_notice",
        property(lambda head: head.parent is not None),
        3,
    ),
    store("a held run is revived", RevivesTheHeld, 1, 4, 10),
    store("a revival keeps the lease", RevivesWithItsLease, 3),
    store("a revival keeps what was lost", RevivesWithItsLosses, 3),
    leased_run("an outcome of an earlier generation", RecordsForAnotherGeneration, 1, 2, 5),
    store("a slot of an earlier generation counts", CountsForAnyGeneration, 6),
    patch("a key stands for a void slot", f"{_DELIVERY}_stands", lambda *_: True, 6),
    patch("a number that is passed counts", f"{_DELIVERY}_is_void", lambda *_: False, 6),
    advance("no place under a limit", KnowsNoGate, 11),
)
