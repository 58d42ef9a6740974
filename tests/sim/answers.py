"""What was answered to callers is true: properties 6, 8 and 10."""

from collections.abc import Mapping

from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.status import Status
from stepwell_engine.service.runs.controls import Signal
from tests.sim.ledger import Ledger
from tests.sim.scheduler import Violation


class Answers:
    """Remembers the answers. `keys` are the idempotency keys of runs, by workflow and key."""

    def __init__(self, ledgers: Mapping[str, Ledger], keys: Mapping[tuple[str, str], str]) -> None:
        self._ledgers = ledgers
        self._keys = keys
        self._creators: set[str] = set()

    def started(self, head: Head, created: bool, key: str | None) -> None:
        """A start was answered with a run."""
        if head.run_id not in self._ledgers:
            raise Violation(8, f"{head.run_id} was answered and does not exist")
        if key is not None and self._keys.get((head.workflow, key)) != head.run_id:
            raise Violation(8, f"{head.run_id} was answered for the key of another run")
        if created and head.run_id in self._creators:
            raise Violation(8, f"{head.run_id} was created twice")
        if created:
            self._creators.add(head.run_id)

    def cancelled(self, run_id: str, cascade: bool) -> None:
        """A cancel was answered."""
        ledger = self._ledgers[run_id]
        if ledger.head.status is not Status.CANCELLED:
            raise Violation(10, f"cancelled was answered, the run is {ledger.head.status}")
        if cascade and not ledger.head.cascade:
            raise Violation(10, f"{run_id} was answered to be cancelled with its children")

    def signalled(self, sent: Signal) -> None:
        """A signal was answered; a repeated key is the same signal."""
        ledger = self._ledgers[sent.run_id]
        if sent.id not in ledger.accepted:
            raise Violation(6, f"signal {sent.id} was answered and never stored")
        if ledger.answered.setdefault(sent.id, sent.created_at) != sent.created_at:
            raise Violation(8, f"signal {sent.id} has two times: {sent.created_at} is another")
