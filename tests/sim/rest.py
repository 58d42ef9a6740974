"""Every run moves within its time, and nothing is missing once all runs are over."""

from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.declared.program import DeclaredProgram
from stepwell_engine.core.run.head import Head
from stepwell_engine.limits import CLOCK_MARGIN, LEASE, MINUTE
from stepwell_engine.ports import Clock, Runs
from stepwell_engine.service.runs.run_reader import RunReader, journal_of
from tests.sim.checks import Checks
from tests.sim.ledger import Ledger, joined
from tests.sim.scheduler import SKEW, Violation

_SLACK = 5_000  # calls under way, in ms


def check_pace(checks: Checks, now: int, period: int) -> None:
    """Every run that is not over moved since it could: within a lease and a tick. Property 3.

    If hints to a run that is overdue for long were lost, within the time to its next one.

    In a calm world: within PROMPT. A run that has ended notifies its parent as soon.
    """
    for run_id, ledger in checks.ledgers.items():
        head = ledger.head
        if ledger.done:
            continue
        held = head.lease_token is not None
        since = head.lease_expires_at + CLOCK_MARGIN if held else ledger.ready_since
        if not held and head.live:
            checks.prompt(since, f"a claim of {run_id}")
        left = checks.left_alone.since(run_id)
        since = max(since, ledger.moved_at, checks.last_fault, left)
        if (head.live or held) and now - since > _longest(head, since) + period + _SLACK:
            raise Violation(3, f"{run_id} has not moved for {now - since} ms")
        since = max(ledger.ended_at, checks.last_fault, left)
        if head.notify_pending and now - since > _longest(head, since) + period + _SLACK:
            raise Violation(3, f"{run_id} has not notified its parent for {now - since} ms")


def _longest(head: Head, since: int) -> int:
    """How long a run may stand still from a time on at which it was overdue.

    A hint that was lost comes again after a minute, and after four if the run is so old, by the
    clock of a tick.
    """
    age = since - (since if head.wake_at is None else head.wake_at)
    return LEASE if age < 4 * MINUTE - 2 * SKEW else 4 * MINUTE


def check_rest(checks: Checks, store: Runs, clock: Clock) -> None:
    """At the end every run is over, and everything that was recorded is there."""
    for run_id, ledger in checks.ledgers.items():
        head = ledger.head
        if not ledger.done:
            raise Violation(3, f"{run_id} is {head.status} and nobody will look at it")
        for name, data in ledger.referred.items():
            if store.blob(run_id, name) != data:
                raise Violation(1, f"blob {name} of {run_id} changed")
        _check_executions(ledger)
        signals = (message for message in ledger.accepted if message not in checks.ledgers)
        there = ledger.consumed | set(ledger.pending)
        if missing := [message for message in signals if message not in there]:
            raise Violation(6, f"signals {missing} of {run_id} are gone")
        _check_joins(ledger, RunReader(store, clock))
        checks.families.at_rest(ledger)


def _check_executions(ledger: Ledger) -> None:
    for execution in ledger.executions:
        known = execution.recorded or execution.stopped
        if not known and execution.token not in ledger.lost:
            rule = 10 if ledger.head.stopped else 5
            raise Violation(rule, f"{execution} is not recorded, its lease was not lost")


def _check_joins(ledger: Ledger, reader: RunReader) -> None:
    """A join's output, as readers see it, has every child's."""
    joins = [
        step
        for step in ledger.definition.steps
        if step.kind is Kind.JOIN and ledger.succeeded(step.key)
    ]
    if not joins:
        return
    head, program = ledger.head, DeclaredProgram(ledger.definition)
    records = reader.records(head, journal_of(head, program.keys), program.keys)
    for step in joins:
        found = reader.output(head, program, records, step.key)
        if found != joined(ledger, step):
            raise Violation(1, f"{step.key} reads {found!r}")
