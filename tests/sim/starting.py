"""Whether an attempt may start: with this lease, now, beside what is in flight."""

from stepwell_engine.core.run.attempt import Attempt
from stepwell_engine.limits import CHILDREN_AT_ONCE
from tests.sim.ledger import Ledger
from tests.sim.scheduler import Violation


def check_may_start(ledger: Ledger, attempt: Attempt, token: str, left: int, now: int) -> None:
    """With this lease, now, beside what is in flight. Properties 4 and 10."""
    head = ledger.head
    if head.lease_token != token:
        raise Violation(4, f"{token} starts an attempt, but the lease is {head.lease_token}'s")
    if now + left > head.lease_expires_at:
        lasts = head.lease_expires_at - now
        raise Violation(4, f"an attempt may take {left} ms, the lease ends in {lasts}")
    if any(one.token != token and not one.over for one in ledger.unrecorded):
        raise Violation(4, f"{token} starts an attempt beside another worker's")
    hand = ledger.in_hand(token)
    if len(hand.in_flight) >= CHILDREN_AT_ONCE:
        raise Violation(4, f"{attempt.step} starts beside {len(hand.in_flight)} others")
    if not head.live and not head.stopped:
        raise Violation(10, f"an attempt of a run that is {head.status}")
