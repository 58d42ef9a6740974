"""Defects of what hints and ticks do."""

from contextlib import suppress
from dataclasses import replace

from stepwell_engine import limits
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.errors import NewerFormat
from stepwell_engine.service.worker.advance import Advance
from tests.sim.links import Store
from tests.sim.mutation import Mutation, advance, patch, store


class SendsEarlyHintsAgain(Advance):
    def _claim(self, run_id: str, project: str, lane: Lane) -> Head | None:
        claimed = super()._claim(run_id, project, lane)
        with suppress(NewerFormat):
            head = self._runs.get(run_id) if claimed is None else None
            if head is not None and head.live and head.lease_token is None:
                missing = head.ready_at - self._clock.now()
                if limits.CLAIM_WAIT < missing <= limits.MAX_HINT_DELAY:
                    self._dispatcher.hint(about_run(run_id, project), missing)
        return claimed


def _doubling(age: int) -> int:
    return 0 if age < 0 else (age // limits.MINUTE).bit_length() + 1


class AClaimLeavesWakeAt(Store):
    def _claimed(
        self, head: Head, lease_token: str, now: int, lease_expires_at: int, lane: Lane
    ) -> Head:
        claimed = super()._claimed(head, lease_token, now, lease_expires_at, lane)
        return replace(claimed, wake_at=head.wake_at)


_AGES = "stepwell_engine.service.worker.sweep.ages_passed"

HINTS: tuple[Mutation, ...] = (
    advance("early duplicates are sent again", SendsEarlyHintsAgain, 14),
    patch("what is overdue is hinted once", _AGES, lambda age: int(age >= 0), 3),
    patch("the ages of what is overdue double", _AGES, _doubling, 3),
    store("a claim leaves the wake_at of an overdue run", AClaimLeavesWakeAt, 3),
)
