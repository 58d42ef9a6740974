"""What the time of an attempt goes to before its effect: a worker that stands still, look-ups."""

from random import Random

from stepwell_engine.core.run.attempt import Attempt, Deferred
from tests.sim.faults import Faults
from tests.sim.ledger import Execution, Ledger
from tests.sim.scheduler import Actor


class Lookups:
    """How slow they are in one seed, drawn apart from everything else: most seeds have none."""

    def __init__(self, seed: int, faults: Faults) -> None:
        self._own = Random(f"lookups {seed}")
        self._faults = faults
        self._often = self._own.choice((0.0, 0.0, 0.0, 0.3))

    @property
    def any(self) -> bool:
        """Whether the seed has slow look-ups at all."""
        return self._often > 0

    def stall(self) -> int:
        """How long the worker stands still before the runner begins, in ms: any time."""
        if not self._faults.active or self._own.random() >= self._often:
            return 0
        return int(10 ** (2 + 3.8 * self._own.random()))

    def takes(self, timeout: int) -> int:
        """How long an attempt with this timeout looks up what it needs, in ms."""
        if self._own.random() >= self._often:
            return 0
        return int(1.3 * timeout * self._own.random())


def put_off(
    ledger: Ledger, attempt: Attempt, actor: Actor, outcome: Deferred, now: int
) -> Execution:
    """An attempt that is deferred before it had any effect; its worker may have lost the lease.

    Or have claimed the run anew since it began.
    """
    tokens = {one.token for one in actor.process.members}
    held = ledger.head.lease_token
    token = held if held is not None and held in tokens else actor.token
    execution = Execution(
        attempt.step, attempt.number, token, ends_by=now, outcome=outcome, ended_at=now, over=True
    )
    if held == token:
        ledger.unrecorded.append(execution)
    else:
        execution.recorded = True
    return execution
