"""Why a run is not moving, in words."""

from collections.abc import Sequence
from typing import Final

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.declared.kinds import ACTION_KINDS, KINDS
from stepwell_engine.core.declared.progress import Progress
from stepwell_engine.core.run.status import StepStatus
from stepwell_engine.core.values.times import iso

_NAMED: Final = 3  # steps in one sentence


def reason(run: Progress) -> str | None:
    """One clause about a live run; None for one that has ended."""
    head = run.head
    if not head.live:
        return None
    if head.lease_token is not None and not run.held:
        # The loss counts once the run is claimed again.
        lost = head.lost_leases + 1
        times = "" if lost == 1 else f" {lost} times"
        takes_over = "another one takes over within a minute or two"
        return f"its worker was lost{times}: {takes_over}{_turns(lost)}"
    todo = run.todo()
    if not todo:
        return _standing(run)
    due = run.due()
    if due and run.held:
        return f"running {_names(run, due)}{_losses(run)}"
    if due:
        awaited = "its turn" if head.suspect else "a worker"
        return f"waiting for {awaited} to go on at {_names(run, due)}{_losses(run)}"
    first = min(todo, key=lambda one: run.records[one.key].next_at or 0)
    at = iso(run.records[first.key].next_at or 0)
    others = len(todo) - 1
    later = f"; {others} more back{'s' if others == 1 else ''} off" if others else ""
    return f"retrying {_name(run, first)} at {at}, {_tries(run, first)}{later}"


def _losses(run: Progress) -> str:
    lost = run.head.lost_leases
    if not lost:
        return ""
    text = f"; its worker was lost {'once' if lost == 1 else f'{lost} times'}"
    return text if run.held else text + _turns(lost)


def _turns(lost: int) -> str:
    """What else a run waits for that may itself be what its workers were lost of."""
    if lost < limits.SUSPECT_LOST_LEASES:
        return ""
    return ", so each of its attempts runs alone, one run at a time"


def _standing(run: Progress) -> str:
    """Where no action is the run's turn: a sleep, a wait, a child run, a beginning or an end."""
    step = run.current()
    if step is None or step.kind in ACTION_KINDS or step.kind is Kind.JOIN:
        return f"{'ending' if run.held else 'waiting for a worker to end it'}{_losses(run)}"
    record = run.records.get(step.key)
    waits_for = KINDS[step.kind].waits_for
    if record is None or record.next_at is None or record.next_at <= run.now or waits_for is None:
        going_on = "going on" if run.held else "waiting for a worker to go on"
        return f"{going_on} at step {step.key}{_losses(run)}"
    losses = _losses(run) if record.status is StepStatus.PENDING else ""
    return waits_for(step, record, iso(record.next_at)) + losses


def _names(run: Progress, steps: Sequence[Step]) -> str:
    if len(steps) == 1:
        return f"{_name(run, steps[0])}, {_tries(run, steps[0])}"
    keys = [_key(step) for step in steps[:_NAMED]]
    more = len(steps) - len(keys)
    last = f"{more} more" if more else keys.pop()
    compensating = steps[0].key in run.definition.compensations
    what = "the compensations of steps" if compensating else "steps"
    return f"{what} {', '.join(keys)} and {last}"


def _name(run: Progress, step: Step) -> str:
    compensating = step.key in run.definition.compensations
    return f"{'the compensation of ' if compensating else ''}step {_key(step)}"


def _key(step: Step) -> str:
    return step.key.removeprefix("compensate:")


def _tries(run: Progress, step: Step) -> str:
    record = run.records.get(step.key)
    return f"attempt {(record.attempt if record else 0) + 1} of {step.max_attempts}"
