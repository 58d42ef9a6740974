"""Sends hints for all that is due: the handler of the function `tick`."""

from typing import Any

from stepwell_engine.lambdas.tick import send_due_hints
from stepwell_engine.wiring.invocation import invocation


def handler(event: dict[str, Any], context: Any) -> None:
    """An event of the scheduler, or of a tick that did not see everything."""
    with invocation(context) as (home, ages):
        overdue = send_due_hints(
            home.engine.sweep,
            home.ticks,
            home.flush,
            home.invoke_later,
            home.counters.add,
            event,
            context,
        )
        ages.update(overdue)
