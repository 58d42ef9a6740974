"""What becomes of the attempts of a host that is told to stop."""

from stepwell_engine.core.run.attempt import Succeeded
from stepwell_engine.limits import MAX_OUTPUT
from tests.sim.ledger import Execution, InHand, Ledger


def left_out(hand: InHand, stops: bool) -> list[Execution]:
    """What a write should have recorded and has not.

    A host that `stops` need not record a failure for good: that waits for its siblings in flight,
    of which some may not have had an effect yet.
    """
    left = [one for one in hand.known if not one.recorded]
    return [one for one in left if not stops or _succeeds(one)]


def _succeeds(execution: Execution) -> bool:
    outcome = execution.outcome
    return isinstance(outcome, Succeeded) and len(outcome.output or b"") < MAX_OUTPUT // 2


def let_go(ledger: Ledger, hand: InHand) -> None:
    """The lease is released: what a stopping host has not recorded is never recorded."""
    for one in (*hand.in_flight, *hand.known):
        one.stopped |= not one.recorded
    ledger.unrecorded = [one for one in ledger.unrecorded if not one.stopped]
