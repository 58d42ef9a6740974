"""One tick: hints for all that is due, or will be soon; what is left is another invocation's."""

import logging
from collections.abc import Callable
from typing import Any, Final

from stepwell_engine.core.values import jsonvalue
from stepwell_engine.errors import StoreError
from stepwell_engine.ports import Ticks
from stepwell_engine.service.worker.sweep import Sweep

log = logging.getLogger(__name__)

MARGIN: Final = 15_000  # ms for the page in hand, the last hints and the next invocation
MOST_TURNS: Final = 10  # then the tick of the next minute goes on, from another shard


def send_due_hints(
    sweep: Sweep,
    ticks: Ticks,
    flush: Callable[[], None],
    invoke_later: Callable[[str, bytes], bool],
    count: Callable[[str], None],
    event: dict[str, Any],
    context: Any,
) -> dict[str, int]:
    """Send hints while there is time; the metrics that are ages in ms: `Overdue`.

    The event is `{}` from the scheduler; from a tick before `{"cursor": text, "turn": n}`, with
    the `since` and `began` of that tick.
    `flush` sends the hints of the sweep that wait for a full batch. `invoke_later` takes the ARN
    of a function and its event; it tells whether that will be invoked.
    """
    turn = event.get("turn", 1)
    since = event.get("since") if "cursor" in event else _last(ticks)
    budget = context.get_remaining_time_in_millis() - MARGIN
    try:
        swept = sweep.tick(
            event.get("cursor"), max(0, budget), since=since, began=event.get("began")
        )
    finally:
        flush()
    if swept.cursor is None:
        _record(ticks, swept.began)
    else:
        following = jsonvalue.encode(
            {"cursor": swept.cursor, "turn": turn + 1, "since": since, "began": swept.began}
        )
        if turn >= MOST_TURNS or not invoke_later(context.invoked_function_arn, following):
            count("TicksCutShort")
    return {"Overdue": swept.overdue}


def _last(ticks: Ticks) -> int | None:
    """When the last tick was; None, which hints everything, if the store does not say."""
    try:
        return ticks.last()
    except StoreError as error:
        log.warning("the time of the last tick is unknown: %s; all that is due is hinted", error)
        return None


def _record(ticks: Ticks, began: int) -> None:
    try:
        ticks.record(began)
    except StoreError as error:
        log.warning("a tick is not recorded: %s; the next one counts from one before", error)
