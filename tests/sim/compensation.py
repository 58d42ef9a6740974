"""The compensations of a failed run go backwards, each once: property 9."""

from stepwell_engine.core.declared.definition import Step
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.status import Status, StepStatus
from tests.sim.ledger import Ledger, outstanding
from tests.sim.scheduler import Violation


def check_compensation(ledger: Ledger, before: Journal, new: Head) -> None:
    """The cursor stands where the records say; `ledger` has the new journal already."""
    journal = ledger.journal
    failure = journal.failure
    if before.failure is not None and (failure is None or failure.step != before.failure.step):
        raise Violation(9, f"{before.failure} became {failure}")
    compensations = [one for one in ledger.records.values() if ledger.compensates(one.key)]
    if failure is None or failure.step is None:
        if compensations or journal.compensating is not None:
            raise Violation(9, f"compensated without a failure: {compensations}")
        return
    if ledger.status(failure.step) is not StepStatus.FAILED:
        raise Violation(9, f"{failure}, but the step is not recorded as failed")
    steps = ledger.definition.steps
    left = [index for index in range(journal.position) if outstanding(ledger, index)]
    last = left[-1] if left else -1
    for record in compensations:
        if ledger.definition.owner(record.key) < last:
            raise Violation(9, f"{record}, but {steps[last].key} is not compensated")
    if not new.stopped:  # whose compensation stops where it is
        _check_cursor(ledger, last, new)


def _check_cursor(ledger: Ledger, last: int, new: Head) -> None:
    journal = ledger.journal
    reached = journal.compensating
    begun = reached is not None
    if reached is not None and not (ledger.undecided and reached > last):
        if reached != last:
            raise Violation(9, f"compensating {reached}, but {last} is the next")
        bits = journal.children_compensated
        if last >= 0 and bits != _bits(ledger, ledger.definition.steps[last]):
            raise Violation(9, f"the journal says {bits:b} of step {last} are compensated")
    compensations = [one for one in ledger.records.values() if ledger.compensates(one.key)]
    if not begun and compensations:
        raise Violation(9, "compensated before that began")
    failed = [one for one in compensations if one.status is StepStatus.FAILED]
    stuck = journal.failure is not None and journal.failure.stuck
    if stuck != bool(failed) and not ledger.undecided:
        raise Violation(9, f"stuck: {stuck}, but these failed: {failed}")
    if new.status is Status.FAILED and last >= 0 and not stuck:
        raise Violation(9, f"over, but {ledger.definition.steps[last].key} is not compensated")


def _bits(ledger: Ledger, top: Step) -> int:
    return sum(
        1 << index
        for index, child in enumerate(top.children)
        if child.compensate is not None and ledger.succeeded(child.compensate.key)
    )
