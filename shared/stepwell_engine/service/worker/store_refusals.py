"""What the store refuses to the workers of this process, to tell why a run stands still."""

from stepwell_engine.core.values.units import RunId


class StoreRefusals:
    """Runs whose worker has something in hand that the store does not take, and its reasons.

    Each call is one operation of a dict: threads may share it.
    """

    def __init__(self) -> None:
        self._reasons: dict[RunId, str] = {}

    def note(self, run_id: RunId, reason: str) -> None:
        """The store refused a call of the run's worker."""
        self._reasons[run_id] = reason

    def forget(self, run_id: RunId) -> None:
        """It answered, or the worker gave up."""
        self._reasons.pop(run_id, None)

    def of(self, run_id: RunId) -> str | None:
        """Why a run stands still, in one clause; None if the store refuses it nothing."""
        reason = self._reasons.get(run_id)
        return None if reason is None else f"the store refuses: {reason}"

    def latest(self) -> str | None:
        """The latest refusal that lasts, of any run; None if there is none."""
        reasons = list(self._reasons.values())
        return f"the store refuses: {reasons[-1]}" if reasons else None
