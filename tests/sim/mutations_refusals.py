"""Defects of workers whose store refuses for a while."""

from typing import Any

from stepwell_engine.core.run.head import Head
from stepwell_engine.service.retry_unavailable import retry_unavailable
from stepwell_engine.service.worker.leased_run import LeasedRun
from stepwell_engine.service.worker.persistence import Persistence
from tests.sim.mutation import Mutation, leased_run, patch


def _gives_up_soon(persist: Persistence, call: Any) -> Any:
    return retry_unavailable(persist.clock, call)


class AdoptsWhatItFinds(LeasedRun):
    def _claim_again(self, head: Head) -> bool:
        if head.lease_token is None or not head.live:
            return False
        self._token = head.lease_token
        self._take(head, self._codec.decode(head.journal))
        return True


REFUSALS: tuple[Mutation, ...] = (
    patch(
        "an outcome in hand is given up soon",
        "stepwell_engine.service.worker.persistence.Persistence.__call__",
        _gives_up_soon,
        4,
    ),
    patch(
        "a process claims what it holds",
        "stepwell_engine.service.runs.store_refusals.StoreRefusals.in_hand",
        lambda *_: False,
        4,
        5,
    ),
    leased_run("a token that is found is adopted", AdoptsWhatItFinds, 2, 4, 5),
)
