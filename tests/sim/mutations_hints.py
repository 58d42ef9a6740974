"""Defects of what hints and ticks do."""

from stepwell_engine import limits
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.service.worker.advance import Advance
from tests.sim.mutation import Mutation, advance


class SendsEarlyHintsAgain(Advance):
    def _claim(self, run_id: str, project: str, lane: Lane) -> Head | None:
        claimed = super()._claim(run_id, project, lane)
        head = self._runs.get(run_id) if claimed is None else None
        if head is not None and head.live and head.lease_token is None:
            missing = head.ready_at - self._clock.now()
            if limits.CLAIM_WAIT < missing <= limits.MAX_HINT_DELAY:
                self._dispatcher.hint(about_run(run_id, project), missing)
        return claimed


HINTS: tuple[Mutation, ...] = (
    advance("early duplicates are sent again", SendsEarlyHintsAgain, 14),
)
