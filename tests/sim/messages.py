"""Inboxes: what a write took out of one, and why. Properties 3 and 6."""

from collections.abc import Callable, Iterable

from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.inbox import InboxMessage
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.keys import StepKey
from stepwell_engine.core.run.status import StepStatus
from tests.sim.ledger import Ledger, content, message_content
from tests.sim.scheduler import Violation

Prompt = Callable[[int, str], None]


def check_inbox(
    ledger: Ledger,
    journal: Journal,
    old: Head,
    new: Head,
    passed: Iterable[StepKey],
    prompt: Prompt,
) -> None:
    """Every wait that ended took the oldest signal of its name; no other signal went.

    A child's message goes once nobody waits for that child any more. `ledger` has the new records
    and the old journal; `passed` are the steps that succeeded.
    """
    left = dict(ledger.pending)
    for key in passed:
        step = ledger.definition.by_key[key]
        if step.kind is not Kind.WAIT_FOR_SIGNAL:
            continue
        taken = next((name for name, one in left.items() if _is(one, step)), None)
        output = content(ledger, step, ledger.records[key].output)
        if taken is None or message_content(ledger, left[taken]) != output:
            raise Violation(6, f"{step.key} took a signal that was not the next: {output!r}")
        if taken in ledger.consumed:
            raise Violation(6, f"signal {taken} was consumed twice")
        if step is ledger.step:  # it stood there before this write
            prompt(max(ledger.accepted[taken], ledger.moved_on_at), f"signal {taken}")
        ledger.consumed.add(taken)
        del left[taken]
    awaited = _awaited(journal)
    for key, message in old.inbox.items():
        if message.kind != "child" or key in new.inbox:
            continue
        if key in awaited:
            raise Violation(3, f"the message of child {key} was thrown away, it is waited for")
        if key in _awaited(ledger.journal):
            prompt(max(ledger.accepted[key], ledger.moved_on_at), f"the message of child {key}")
        del left[key]
    ledger.pending = left
    inline = [one for one in left if one not in ledger.numbered]
    if inline != list(new.inbox):
        raise Violation(6, f"inbox {list(old.inbox)} became {list(new.inbox)}, not {inline}")
    beside = [ledger.numbered[one] for one in left if one in ledger.numbered]
    if new.overflow_count != len(beside):
        raise Violation(6, f"{new.overflow_count} are said to be in the overflow, not {beside}")
    if new.live and (lost := [one for one in beside if one in journal.taken]):
        raise Violation(6, f"{lost} of the overflow are given up, not consumed")


def check_parked(ledger: Ledger, new: Head) -> None:
    """No worker parks a run that has a message it waits for."""
    step = ledger.step
    if step is None or ledger.journal.opened(step.key) is None:
        return
    if any(_is(message, step) for message in ledger.pending.values()):
        raise Violation(6, f"parked although {step.signal} is there")
    for child in _awaited(ledger.journal):
        if child in new.inbox:
            raise Violation(3, f"parked although the message of {child} is there")


def accept(
    ledger: Ledger, message_id: str, message: InboxMessage, number: int | None, now: int
) -> None:
    """A message counts from now on, in the overflow with a number."""
    if message.kind == "signal" and message_id in ledger.accepted:
        raise Violation(6, f"signal {message_id} was put there twice")
    ledger.accepted.setdefault(message_id, now)
    ledger.pending[message_id] = message
    if number is not None:
        ledger.numbered[message_id] = number
    step = ledger.step if ledger.journal.failure is None else None
    if message.kind == "child" or (step is not None and _is(message, step)):
        ledger.ready_since = min(ledger.ready_since, now)


def _is(message: InboxMessage, step: Step) -> bool:
    return message.kind == "signal" and message.name == step.signal


def _awaited(journal: Journal) -> set[str]:
    """The children that a run waits for."""
    begun = (StepStatus.PENDING, StepStatus.WAITING)
    return {one.child for one in journal.open if one.child is not None and one.status in begun}
