"""Why a run is not moving, in words."""

from collections.abc import Sequence
from typing import Final

from stepwell_engine import limits
from stepwell_engine.core.declared.actions import Action
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.declared.kinds import ACTION_KINDS, KINDS
from stepwell_engine.core.run.status import StepStatus
from stepwell_engine.service.runs.progress import Progress, iso

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
        return f"waiting for a worker to go on at {_names(run, due)}{_losses(run)}"
    first = min(todo, key=lambda one: run.records[one.key].next_at or 0)
    at = iso(run.records[first.key].next_at or 0)
    others = len(todo) - 1
    later = f"; {others} more back{'s' if others == 1 else ''} off" if others else ""
    return f"retrying {_name(first)} at {at}, {_tries(run, first)}{later}"


def _losses(run: Progress) -> str:
    lost = run.head.lost_leases
    if not lost:
        return ""
    told = f"; its worker was lost {'once' if lost == 1 else f'{lost} times'}"
    return told if run.held else told + _turns(lost)


def _turns(lost: int) -> str:
    """What else a run waits for that may itself be what its workers were lost of."""
    if lost < limits.SUSPECT_LOST_LEASES:
        return ""
    return ", and where workers share a process, runs that lost theirs so often go on one at a time"


def _standing(run: Progress) -> str:
    """Where no action is the run's turn: a sleep, a wait, a child run, a beginning or an end."""
    step = run.current()
    if step is None or step.kind in ACTION_KINDS or step.kind is Kind.JOIN:
        return f"{'ending' if run.held else 'waiting for a worker to end it'}{_losses(run)}"
    record = run.records.get((step.ordinal, False))
    waits_for = KINDS[step.kind].waits_for
    if record is None or record.next_at is None or record.next_at <= run.now or waits_for is None:
        going_on = "going on" if run.held else "waiting for a worker to go on"
        return f"{going_on} at step {step.key}{_losses(run)}"
    losses = _losses(run) if record.status is StepStatus.PENDING else ""
    return waits_for(step, record, iso(record.next_at)) + losses


def _names(run: Progress, actions: Sequence[Action]) -> str:
    if len(actions) == 1:
        return f"{_name(actions[0])}, {_tries(run, actions[0])}"
    keys = [_key(one) for one in actions[:_NAMED]]
    more = len(actions) - len(keys)
    last = f"{more} more" if more else keys.pop()
    what = "the compensations of steps" if actions[0].compensation else "steps"
    return f"{what} {', '.join(keys)} and {last}"


def _name(action: Action) -> str:
    return f"{'the compensation of ' if action.compensation else ''}step {_key(action)}"


def _key(action: Action) -> str:
    return action.step.key.removeprefix("compensate:")


def _tries(run: Progress, action: Action) -> str:
    record = run.records.get(action.key)
    return f"attempt {(record.attempt if record else 0) + 1} of {action.step.max_attempts}"
