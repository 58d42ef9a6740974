"""A journal says what happened: which steps a write finished, and which it left open."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.declared.kinds import ACTION_KINDS
from stepwell_engine.core.run.attempt import Deferred, Failed, Succeeded
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.keys import StepKey
from stepwell_engine.core.run.records import Joined, Record
from stepwell_engine.core.run.status import StepStatus
from tests.sim.ledger import Execution, InHand, Ledger, content, joined
from tests.sim.scheduler import SKEW, Violation


class Calls(Protocol):
    """Checks what a write says about the children of a sub-workflow step."""

    def goes_on(self, ledger: Ledger, step: Step, old: Record | None, new: Record) -> bool:
        """The step is still open; whether another child is about to be started."""
        ...

    def is_over(self, ledger: Ledger, step: Step, old: Record | None, done: Record) -> None:
        """The step is finished."""
        ...


@dataclass(frozen=True, slots=True)
class Look:
    """One write: the ledger with the old journal and the new records, and the new head.

    `tried` are the executions whose outcomes the write must carry; `now` is the true time.
    """

    ledger: Ledger
    head: Head
    journal: Journal
    fresh: tuple[Record, ...]
    tried: Mapping[StepKey, Execution]
    now: int
    calls: Calls

    def joins_failed(self, key: StepKey) -> bool:
        """Whether this write failed the join for which a child ran."""
        definition = self.ledger.definition
        index = definition.owner(key)
        return any(
            one.status is StepStatus.FAILED and one.key == definition.steps[index + 1].key
            for one in self.fresh
            if index + 1 < len(definition.steps)
        )


def check_open(look: Look) -> int:
    """The times of an open step stay as they are until its next attempt.

    Return how many child runs are about to be started.
    """
    ledger, child_starts = look.ledger, 0
    for old in ledger.journal.open:
        new = look.journal.opened(old.key)
        if new == old or old.key in ledger.records:
            continue
        called = ledger.definition.by_key[old.key].kind is Kind.SUBWORKFLOW
        tried = old.key in look.tried or old.key in ledger.deferred
        if new is None or not (tried or called or _lost(old, new)):
            raise Violation(2, f"{old} became {new}, and it was not tried")
    for new in look.journal.open:
        before = ledger.journal.opened(new.key)
        if new.key in ledger.records:
            raise Violation(1, f"{new} is finished and begun")
        step = ledger.definition.by_key[new.key]
        if step.kind in ACTION_KINDS:
            attempts = before.attempt if before is not None else 0
            if new.attempt != attempts:
                _check_retry(look, step, new, attempts)
            elif new != before and not ledger.blame.check_lost(before, new):
                _check_deferred(look, new)
        elif step.kind is Kind.SUBWORKFLOW:
            child_starts += look.calls.goes_on(ledger, step, before, new)
        elif step.kind is Kind.JOIN:
            if new.status is not StepStatus.WAITING:
                raise Violation(2, f"{new}: a join waits")
        elif new.next_at != (new.started_at or 0) + step.sleep_for + step.timeout:
            raise Violation(6, f"{new} does not end when it should")
    return child_starts


def _lost(old: Record, new: Record) -> bool:
    """Whether its worker was lost, which is looked at where the new record is."""
    return (new.losses, new.hosts_lost) != (old.losses, old.hosts_lost)


def _check_retry(look: Look, step: Step, new: Record, before: int) -> None:
    tried = look.tried.get(new.key)
    if tried is None or tried.attempt != new.attempt:
        raise Violation(5, f"{new}: no such attempt was made with this lease")
    if new.attempt != before + 1 or new.attempt >= step.max_attempts:
        raise Violation(5, f"attempt {before} of {step.key} is followed by {new.attempt}")
    outcome = tried.outcome
    if not isinstance(outcome, Failed) or not outcome.retryable or not _reports(new, outcome):
        raise Violation(1, f"{new} was recorded for {outcome}")
    if (new.next_at or 0) < tried.ended_at - SKEW + pause(new.attempt, outcome.retry_after):
        raise Violation(5, f"{new} is tried again before its pause is over")
    look.ledger.blame.forget(new.key)
    tried.recorded = True


def _check_deferred(look: Look, new: Record) -> None:
    """A deferred attempt costs nothing, and is due again after the shortest pause."""
    tried = look.ledger.deferred.get(new.key)
    if tried is None or not isinstance(tried.outcome, Deferred):
        raise Violation(5, f"{new}: it was not tried")
    if new.error != tried.outcome.message or (new.next_at or 0) < tried.ended_at - SKEW + pause(1):
        raise Violation(5, f"{new} was recorded for {tried.outcome}")


def pause(attempt: int, asked: int | None = None) -> int:
    """How long a step waits after a failed attempt, in ms."""
    doubled: int = min(2_000 * 2 ** (attempt - 1), limits.BACKOFF_CAP)
    return max(doubled, min(asked or 0, limits.BACKOFF_CAP))


def check_finished(look: Look, record: Record) -> None:
    """A newly finished step came to what really happened."""
    ledger = look.ledger
    step = ledger.definition.by_key[record.key]
    compensates = ledger.compensates(record.key)
    if compensates and not ledger.succeeded(ledger.compensated_by(record.key)):
        raise Violation(9, f"{record}, but the step did not succeed")
    if record.status is StepStatus.CANCELLED:
        _check_cancelled(look, step, record)
    elif step.kind in ACTION_KINDS:
        _check_action(look, step, record)
    elif step.kind is Kind.SLEEP:
        if record.status is not StepStatus.SUCCEEDED or too_early(record, step.sleep_for, look.now):
            raise Violation(6, f"{record}: it sleeps {step.sleep_for} ms")
    elif step.kind is Kind.WAIT_FOR_SIGNAL:
        _check_wait(look, step, record)
    elif step.kind is Kind.FANOUT:
        if record.status is not StepStatus.SUCCEEDED:
            raise Violation(2, f"{record}: a fan-out only begins its children")
    elif step.kind is Kind.JOIN:
        _check_join(ledger, step, record)
    else:
        before = ledger.journal.opened(record.key)
        look.calls.is_over(ledger, step, before, record)


def _check_wait(look: Look, step: Step, record: Record) -> None:
    if record.status is StepStatus.FAILED:
        if record.code != "wait_timed_out" or too_early(record, step.timeout, look.now):
            raise Violation(6, f"{record}: it waits {step.timeout} ms")
        messages = look.ledger.pending.values()
        if any(one.kind == "signal" and one.name == step.signal for one in messages):
            raise Violation(6, f"{record}, though the signal is there")


def _check_join(ledger: Ledger, step: Step, record: Record) -> None:
    definition = ledger.definition
    children = definition.steps[definition.owner(step.key) - 1].children
    statuses = [ledger.status(child.key) for child in children]
    if record.code == "child_failed":
        if StepStatus.FAILED not in statuses:
            raise Violation(2, f"{record}, but its children are {statuses}")
        return
    if statuses != [StepStatus.SUCCEEDED] * len(children):
        raise Violation(2, f"{record}, but its children are {statuses}")
    large = len(joined(ledger, step)) > limits.MAX_OUTPUT
    if record.status is not (StepStatus.FAILED if large else StepStatus.SUCCEEDED):
        raise Violation(1, f"{record}, its output is {'' if large else 'not '}too large")
    if not large and not isinstance(record.output, Joined):
        raise Violation(1, f"{record} has another output than its children's")


def _check_action(look: Look, step: Step, record: Record) -> None:
    tried = look.tried.get(record.key)
    if record.code == "worker_lost":
        look.ledger.blame.check_given_up(record)
        return
    if tried is None or tried.attempt != record.attempt:
        raise Violation(1, f"{record} was recorded, but the attempt in hand is {tried}")
    outcome = tried.outcome
    if isinstance(outcome, Failed):
        final = not outcome.retryable or record.attempt >= step.max_attempts
        reported = record.status is StepStatus.FAILED and _reports(record, outcome)
        if not reported or not (final or look.head.stopped):
            raise Violation(1, f"{record} was recorded for {outcome}")
    elif isinstance(outcome, Succeeded):
        large = len(outcome.output or b"") > limits.MAX_OUTPUT
        expected = StepStatus.FAILED if large else StepStatus.SUCCEEDED
        kept = large or content(look.ledger, step, record.output) == outcome.output
        if record.status is not expected or not kept:
            raise Violation(1, f"{record} was recorded for {outcome}")
    tried.recorded = True


def _check_cancelled(look: Look, step: Step, record: Record) -> None:
    """What backs off, sleeps or waits does not go on once its run is cancelled, or its join failed.

    If its last attempt comes with this very write, that one failed, and another was to follow.
    """
    compensates = look.ledger.compensates(record.key)
    siblings = not compensates and look.joins_failed(record.key)
    if not look.head.stopped and not siblings:
        raise Violation(10, f"{record} in a run that is {look.head.status}")
    tried = look.tried.get(record.key)
    if tried is None:
        return
    outcome = tried.outcome
    backs_off = (
        isinstance(outcome, Failed)
        and outcome.retryable
        and record.attempt < step.max_attempts
        and _reports(record, outcome)
    )
    late = not siblings and tried.ended_at > (look.head.ended_at or 0) + 2 * SKEW
    if tried.attempt != record.attempt or not backs_off or late:
        raise Violation(10, f"{record} was recorded for {outcome}")
    tried.recorded = True


def check_siblings(fresh: Iterable[Record], hand: InHand, ledger: Ledger) -> None:
    """A child that failed for good is recorded when no sibling is in flight. Property 9.

    Of a cancelled run nothing is compensated: a host that stops waits for none of them.
    """
    stops = ledger.head.stopped
    in_flight = [one for one in hand.in_flight if not (stops and one.stopped)]
    for record in fresh:
        at = ledger.step
        crowd = ledger.compensates(record.key) or at is None or at.kind is Kind.JOIN
        if record.status is StepStatus.FAILED and crowd and in_flight:
            raise Violation(9, f"{record} while {in_flight[0]} is in flight")


def _reports(record: Record, failed: Failed) -> bool:
    return record.error == failed.message[: limits.MAX_ERROR_TEXT]


def too_early(record: Record, lasts: int, now: int) -> bool:
    """Whether a step ended before its time, whatever clock was read."""
    return now + SKEW < (record.started_at or 0) + lasts
