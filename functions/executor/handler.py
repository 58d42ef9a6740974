"""Advances the runs that a batch of hints names: the handler of the function `executor`."""

from typing import Any

from stepwell_engine.lambdas.batch import advance_batch
from stepwell_engine.wiring.invocation import invocation


def handler(event: dict[str, Any], context: Any) -> Any:
    """An event of SQS in, the messages that failed out."""
    with invocation(context) as (home, _):
        return advance_batch(
            home.engine.advance,
            home.clock,
            home.counters.add,
            home.redeliveries.again,
            home.alone_queue,
            event,
            context,
        )
