"""What the store refuses to the workers of this process, to tell why a run stands still."""

from typing import Final

from stepwell_engine import limits
from stepwell_engine.core.values.units import EpochMs, RunId

# A worker that waits for the store calls it again, and is refused again, well within that.
FRESH: Final = 30 * limits.SECOND


class StoreRefusals:
    """Runs whose worker has something in hand that the store does not take, and its reasons.

    Each call is one operation of a dict: threads may share it.
    """

    def __init__(self) -> None:
        self._refusals: dict[RunId, tuple[EpochMs, str]] = {}

    def note(self, run_id: RunId, reason: str, now: EpochMs) -> None:
        """The store refused a call of the run's worker."""
        self._refusals[run_id] = now, reason

    def forget(self, run_id: RunId) -> None:
        """It answered, or the worker gave up."""
        self._refusals.pop(run_id, None)

    def waits(self, run_id: RunId, now: EpochMs) -> bool:
        """Whether a worker has the run in hand and waits for the store; none that stands still.

        `now` is by the clock of the calls of `note`, ms since the epoch.
        """
        noted, _ = self._refusals.get(run_id, (0, ""))
        return now - noted < FRESH

    def of(self, run_id: RunId) -> str | None:
        """Why a run stands still, in one clause; None if the store refuses it nothing."""
        refusal = self._refusals.get(run_id)
        return None if refusal is None else f"the store refuses: {refusal[1]}"

    def latest(self) -> str | None:
        """The latest refusal that lasts, of any run; None if there is none."""
        refusals = list(self._refusals.values())
        return f"the store refuses: {max(refusals)[1]}" if refusals else None
