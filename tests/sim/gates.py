"""Places under a concurrency limit that expire while a worker has a run; no run needs one yet."""

from random import Random

from tests.sim.faults import Faults
from tests.sim.scheduler import Actor, Violation

_SHARE = 0.2
_LASTS = (1_000, 20_000, 70_000, 700_000)  # at most, in ms


class Gates:
    """What a seed draws for each visit of a run."""

    def __init__(self, seed: int, faults: Faults) -> None:
        self._random = Random(f"gates {seed}")
        self._on = self._random.random() < _SHARE
        self._faults = faults

    def expires_at(self, now: int) -> int | None:
        """When the place of a run that is visited `now` is over; None: it needs none."""
        if not self._on or not self._faults.active or self._random.random() < 0.5:
            return None
        return now + int(self._random.choice(_LASTS) * self._random.random())


def check_gate(actor: Actor, ends_by: int) -> None:
    """An attempt ends before the place is over, by every clock. Property 11."""
    if actor.gate_expires_at is not None and ends_by > actor.gate_expires_at:
        late = ends_by - actor.gate_expires_at
        raise Violation(11, f"an attempt may end {late} ms after its place under a limit")
