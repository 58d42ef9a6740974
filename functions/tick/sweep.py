"""One tick: hints for all that is due, or will be soon; what is left is another invocation's."""

from typing import Any, Final

from stepwell_engine.core.values import jsonvalue
from stepwell_engine.wiring.aws import AwsHome

MARGIN: Final = 15_000  # ms for the page in hand, the last hints and the next invocation
MOST_TURNS: Final = 10  # then the tick of the next minute goes on, from another shard


def run(home: AwsHome, event: dict[str, Any], context: Any) -> dict[str, int]:
    """Send hints while there is time; metrics: `Overdue` is an age in ms.

    The event is `{}` from the scheduler, `{"cursor": text, "turn": n}` from a tick before.
    """
    turn = event.get("turn", 1)
    budget = context.get_remaining_time_in_millis() - MARGIN
    try:
        swept = home.engine.sweep.tick(event.get("cursor"), max(0, budget))
    finally:
        home.flush()
    if swept.cursor is not None:
        following = jsonvalue.encode({"cursor": swept.cursor, "turn": turn + 1})
        if turn >= MOST_TURNS or not home.invoke_later(context.invoked_function_arn, following):
            home.counters.add("TicksCutShort")
    return {"Overdue": swept.overdue}
