"""Making sure that an attempt ends before its lease does."""

from functools import partial

from stepwell_engine import limits
from stepwell_engine.core.run.attempt import may_begin
from stepwell_engine.core.run.head import Head, wake_time
from stepwell_engine.core.values.units import EpochMs, Ms
from stepwell_engine.ports import Done
from stepwell_engine.service.worker.persistence import Persistence
from stepwell_engine.service.worker.tools import Tools


def secure(
    tools: Tools, persist: Persistence, head: Head, needed: Ms, gate_expires_at: EpochMs | None
) -> tuple[Head, EpochMs | None]:
    """The head, and the time now if its lease lasts `needed` ms and the margin, or is made to.

    None: it could not be extended, the gate expires too soon, or the run's deadline is over.
    The clock is read last, right before the attempt.
    """
    while True:
        now = tools.clock.now()
        if head.overdue(now) or not may_begin(now, needed, gate_expires_at):
            return head, None
        if may_begin(now, needed, head.lease_expires_at):
            return head, now
        until = now + max(limits.LEASE, needed + 3 * limits.CLOCK_MARGIN)
        token, wake_at = head.lease_token or "", wake_time(until, head.deadline)
        extended = persist(partial(tools.runs.extend, head.run_id, token, until, wake_at))
        if not isinstance(extended, Done):
            return head, None
        head = extended.head
