"""The rules between a parent and its children: properties 3, 9 and 10."""

from collections.abc import Callable, Mapping

from stepwell_engine.core.declared.definition import Step
from stepwell_engine.core.run.child import result_of
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.inbox import InboxMessage
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.limits import CLOCK_MARGIN, MAX_DEPTH
from tests.sim.definitions import MISSING
from tests.sim.ledger import End, Ledger, content, run_output
from tests.sim.outcomes import pause
from tests.sim.scheduler import SKEW, Violation

_RETRIED = frozenset({"child_failed", "timeout", None})
_FINAL = frozenset({"depth_exceeded"})
_BEGUN = (StepStatus.PENDING, StepStatus.WAITING)


class Families:
    """Knows every run."""

    def __init__(self, ledgers: Mapping[str, Ledger], clock: Callable[[], int]) -> None:
        self._ledgers = ledgers
        self._clock = clock

    # --- a child's life -----------------------------------------------------------------------

    def born(self, head: Head) -> None:
        """A child was created: its parent has named it before, and may have given it up since."""
        parent = self._ledgers[head.parent or ""]
        above = parent.head
        if head.run_id not in parent.named:
            raise Violation(9, f"child {head.run_id} was created, its parent never named it")
        if head.depth != above.depth + 1 or head.depth > MAX_DEPTH:
            raise Violation(9, f"a child {head.depth} deep of a parent {above.depth} deep")

    def begins(self, ledger: Ledger) -> None:
        """A run does something: a child only once its parent has recorded that it waits for it."""
        head = ledger.head
        if head.parent is None or head.generation > 0:
            return
        if head.run_id not in self._ledgers[head.parent].children:
            raise Violation(9, f"child {head.run_id} begins, and its parent does not wait for it")

    def _waited_for(self, parent: Ledger, record: Record) -> None:
        """A parent waits for a child: the only one of this attempt, and all others have ended."""
        child = record.child or ""
        if child not in self._ledgers:
            raise Violation(9, f"{record} waits for a child that was never created")
        for other, (key, attempt) in parent.children.items():
            if key == record.key and attempt == record.attempt:
                raise Violation(9, f"{child} and {other} for attempt {attempt}")
            if key == record.key and self._goes_on(other):
                raise Violation(9, f"{child} was started while {other} was running")
        parent.children[child] = record.key, record.attempt

    def ended(self, new: Head) -> None:
        """A child or a cascading run ended: this very write makes a notification pending."""
        ledger = self._ledgers[new.run_id]
        codes = frozenset(one.code for one in ledger.records.values())
        ledger.ends.append(End(new.status, new.ended_at, codes))
        if ledger.told and new.notify_pending and not new.cascade:
            raise Violation(3, f"{new.run_id} tells its parent of a second end")
        if (new.parent is None or ledger.told) and not new.cascade:
            return
        if not new.notify_pending:
            raise Violation(3, f"{new.run_id} ended, and no notification is pending")
        if new.wake_at is None or new.wake_at > self._clock() + CLOCK_MARGIN:
            raise Violation(3, f"{new.run_id} has to notify, and nobody will look at it soon")

    def mark_notified(self, head: Head) -> None:
        """No notification is pending any more: the parent has it, or needs none."""
        if head.cascade:
            ledger = self._ledgers[head.run_id]
            ledger.cascaded_at = ledger.cascaded_at or self._clock()
        if head.parent is None:
            return
        self._ledgers[head.run_id].told = True
        parent = self._ledgers[head.parent]
        # One that was revived since had ended when it refused the message.
        live = parent.head.live and parent.head.generation == 0
        if live and head.run_id not in parent.accepted:
            raise Violation(3, f"{head.run_id} is marked, its parent was not notified")

    def notified(self, message: InboxMessage, run_id: str) -> None:
        """A parent was notified of a child's end."""
        ends = self._ledgers[run_id].ends
        result = result_of(message)
        if (result.status, result.ended_at) not in [(one.status, one.ended_at) for one in ends]:
            raise Violation(9, f"{run_id} ended as {ends}, its parent was notified of {result}")

    # --- the step that called -----------------------------------------------------------------

    def goes_on(self, ledger: Ledger, step: Step, old: Record | None, new: Record) -> bool:
        """A sub-workflow step is open; whether another child is about to be started."""
        if new == old:
            return False
        if new.status is StepStatus.PENDING:
            self._next_attempt(ledger, step, old, new)
            return True
        if old is None or old.status not in _BEGUN or new.attempt != old.attempt:
            raise Violation(9, f"{old} became {new}")
        if new.status is StepStatus.WAITING:
            if new.child != old.child:
                raise Violation(9, f"{old} became {new}")
            self._waited_for(ledger, new)
        elif new.attempt >= step.max_attempts or new.code not in self._codes(
            ledger, step, old, new.child
        ):
            raise Violation(9, f"{old} became {new}")
        elif (new.next_at or 0) < ledger.settled_at - SKEW + pause(new.attempt):
            raise Violation(9, f"{new} is tried again before its pause is over")
        return False

    def _next_attempt(self, ledger: Ledger, step: Step, old: Record | None, new: Record) -> None:
        attempt = 0 if old is None else old.attempt
        if new.attempt != attempt + 1 or new.attempt > step.max_attempts:
            raise Violation(9, f"{old} became {new}")
        if old is not None and old.status is StepStatus.RETRYING:
            if self._clock() + SKEW < (old.next_at or 0):
                raise Violation(9, f"{old} became {new} before its pause was over")
        elif old is not None and not self._codes(ledger, step, old, old.child) & _RETRIED:
            raise Violation(9, f"{old} became {new}, its child came to something final")
        if new.child is None or new.child in self._ledgers:
            raise Violation(9, f"{new} names a child that is there already")
        begins = (new.next_at or 0) - step.timeout
        if not ledger.settled_at - SKEW <= begins <= self._clock() + SKEW:
            raise Violation(6, f"{new} does not end when it should")
        self._all_over(ledger, step)
        ledger.named.add(new.child)

    def is_over(self, ledger: Ledger, step: Step, old: Record | None, done: Record) -> None:
        """A sub-workflow step is finished: with what its child came to."""
        if done.code == "depth_exceeded" and old is None:
            if ledger.head.depth < MAX_DEPTH:
                raise Violation(9, f"{done}, {ledger.head.depth} deep")
            return
        if old is None or old.status not in _BEGUN or done.attempt != old.attempt:
            raise Violation(9, f"{old} became {done}")
        self._all_over(ledger, step)
        if done.status is StepStatus.FAILED:
            again = done.code in _RETRIED and done.attempt < step.max_attempts
            if again or done.code not in self._codes(ledger, step, old, done.child):
                raise Violation(9, f"{done} follows {old}")
            return
        child = self._ledgers[done.child or ""]
        if child.head.status is not Status.SUCCEEDED:
            raise Violation(9, f"{done}, its child is {child.head.status}")
        if content(ledger, step, done.output) != run_output(child):
            raise Violation(1, f"{done} has another output than its child")

    def _all_over(self, ledger: Ledger, step: Step) -> None:
        """No child of the step is running."""
        for child, (key, _) in ledger.children.items():
            if key == step.key and self._goes_on(child):
                raise Violation(9, f"{step.key} goes on while its child {child} is running")

    def _goes_on(self, child: str) -> bool:
        """Whether a child runs, and not since it was revived: that is nothing to its parent."""
        head = self._ledgers[child].head
        return head.live and head.generation == 0

    def _codes(
        self, parent: Ledger, step: Step, old: Record, child: str | None
    ) -> frozenset[str | None]:
        """What an attempt that began as `old` fails with: its child's end, or no child.

        A child that was revived has ended more than once.
        """
        if child is None:
            if old.child in parent.children:
                raise Violation(9, f"{old.child} runs, but it is recorded as not started")
            return frozenset({"unknown_resource" if step.target == MISSING else None})
        ledger = self._ledgers[child]
        ends = [one for one in ledger.ends if one.status is not Status.SUCCEEDED]
        if not ends:
            status = ledger.head.status
            raise Violation(9, f"an attempt failed with its child {child}, which is {status}")
        return frozenset().union(*(self._of_end(ledger, old, one) for one in ends))

    def _of_end(self, child: Ledger, old: Record, end: End) -> frozenset[str | None]:
        if end.status is Status.CANCELLED:
            return frozenset({self._cancelled(child, old)})
        final = _FINAL & end.codes
        if end.status is Status.TIMED_OUT:  # with a failure, perhaps, that was recorded since
            return final | {"child_failed"}
        return final or frozenset({"child_failed"})

    def _cancelled(self, child: Ledger, old: Record) -> str:
        """The code of a cancelled child: a timeout if its time was over, else `child_cancelled`."""
        if child.canceller == child.head.parent:
            if self._clock() + SKEW < (old.next_at or 0):
                raise Violation(9, f"{old} was given up before its time was over")
            return "timeout"
        at = child.head.ended_at or 0
        return "timeout" if at >= (old.next_at or 0) else "child_cancelled"

    # --- at rest ------------------------------------------------------------------------------

    def at_rest(self, ledger: Ledger) -> None:
        """No child goes on once its parent's cancel has cascaded, or if it was not waited for."""
        head = ledger.head
        if head.parent is not None and not head.stopped:
            self.begins(ledger)
        if ledger.cancelled_at is None:
            return
        for record in ledger.records.values():
            child = self._ledgers.get(record.child or "")
            if record.status is not StepStatus.CANCELLED or child is None:
                continue
            latest = ledger.cascaded_at
            if latest is None or child.head.status is Status.CANCELLED or child.head.generation:
                continue
            if child.ended_at > latest:
                raise Violation(10, f"{record.child} went on, though its parent was cancelled")
