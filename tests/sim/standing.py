"""How a head stands after a write: its status, and when the tick will look at it."""

from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.head import Head, wake_time
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.limits import CLOCK_MARGIN, LEASE
from tests.sim.ledger import Ledger
from tests.sim.scheduler import Violation

_PARKED = {
    Kind.SLEEP: (Status.SLEEPING,),
    Kind.WAIT_FOR_SIGNAL: (Status.WAITING,),
    Kind.SUBWORKFLOW: (Status.WAITING, Status.PENDING),
}


def check_standing(ledger: Ledger, new: Head) -> None:
    """The status fits the journal. Property 2."""
    step, journal = ledger.step, ledger.journal
    failure = journal.failure
    if new.status is Status.SUCCEEDED:
        statuses = [record.status for record in ledger.records.values()]
        if statuses != [StepStatus.SUCCEEDED] * len(ledger.definition.flat):
            raise Violation(2, f"succeeded with {statuses}")
    elif new.status is Status.FAILED:
        if failure is None or (failure.step is None) != ledger.broken:
            raise Violation(2, f"failed for no reason: {failure}")
    elif new.live:
        if step is None and not ledger.undecided:  # else the next worker ends it
            raise Violation(2, f"over, but {new.status}")
        if step is not None and new.lease_token is None:
            kinds = (Status.PENDING,) if failure is not None else _PARKED.get(step.kind)
            begun = journal.opened(step.key) is not None
            if begun and new.status not in (kinds or (Status.PENDING,)):
                raise Violation(2, f"{new.status} at {step.kind}")


def check_wake_at(ledger: Ledger, new: Head, now: int) -> None:
    """The tick will look at whatever is not over (R15), at its deadline (R20), at nothing else."""
    wake_at = new.wake_at
    if wake_at is None:
        if new.live or new.lease_token is not None or new.notify_pending:
            raise Violation(3, f"{new.status} without wake_at, token {new.lease_token}")
        return
    if new.notify_pending:
        latest = ledger.ended_at
    elif new.lease_token is not None:
        latest = max(new.lease_expires_at, now)
    elif new.live:
        latest = max(new.ready_at, now + LEASE)
    else:
        raise Violation(3, f"{new.status} and at rest, but with wake_at")
    if new.live:
        latest = max(wake_time(latest, new.deadline), now)
    if wake_at > latest + CLOCK_MARGIN:
        raise Violation(3, f"wake_at comes {wake_at - latest} ms too late")
