"""What the store refuses to the workers of this process, to tell why a run stands still."""

from typing import Final

from stepwell_engine import limits
from stepwell_engine.core.values.units import EpochMs, RunId

# A worker that waits for the store calls it again, and is refused again, well within that.
FRESH: Final = 30 * limits.SECOND


class StoreRefusals:
    """Runs that stand still because the store refuses, and its reasons.

    Of some a worker has something in hand that the store does not take. Others no worker could
    claim: their hints come again. Each call is one operation of a dict: threads may share it.
    """

    def __init__(self) -> None:
        self._in_hand: dict[RunId, tuple[EpochMs, str]] = {}
        self._unclaimed: dict[RunId, str] = {}

    def note(self, run_id: RunId, reason: str, now: EpochMs) -> None:
        """The store refused a call of the worker that has something of the run in hand."""
        self._in_hand[run_id] = now, reason

    def forget(self, run_id: RunId) -> None:
        """It answered, or the worker gave up."""
        self._in_hand.pop(run_id, None)

    def in_hand(self, run_id: RunId, now: EpochMs) -> bool:
        """Whether a worker of this process has something in hand and waits; none that stands still.

        `now` is by the clock of the calls of `note`.
        """
        noted, _ = self._in_hand.get(run_id, (0, ""))
        return now - noted < FRESH

    def unclaimed(self, run_id: RunId, reason: str) -> None:
        """The store refused a claim of the run."""
        self._unclaimed[run_id] = reason

    def claimed(self, run_id: RunId) -> None:
        """It answered a claim."""
        self._unclaimed.pop(run_id, None)

    def of(self, run_id: RunId) -> str | None:
        """Why a run stands still, in one clause; None if the store refuses it nothing."""
        _, in_hand = self._in_hand.get(run_id, (0, None))
        return _clause(in_hand or self._unclaimed.get(run_id))

    def latest(self) -> str | None:
        """The latest refusal that lasts, of any run; None if there is none."""
        in_hand = [reason for _, reason in list(self._in_hand.values())]
        reasons = [*self._unclaimed.values(), *in_hand]
        return _clause(reasons[-1] if reasons else None)


def _clause(reason: str | None) -> str | None:
    return None if reason is None else f"the store refuses: {reason}"
