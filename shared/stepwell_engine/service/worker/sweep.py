"""The tick: hints for everything that is due, or will be before the next tick."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from stepwell_engine import limits
from stepwell_engine.core.values.units import Ms
from stepwell_engine.ports import Clock, Dispatcher, Runs
from stepwell_engine.service.retry_unavailable import retry_unavailable

PAGE: Final = 100


@dataclass(frozen=True, slots=True)
class Swept:
    """What a tick did. `overdue` is the age in ms of the most overdue entry, 0 if there is none;
    `cursor` where the next tick should go on, None if this one saw everything.
    """

    hints: int
    overdue: Ms
    cursor: str | None


class Sweep:
    """Reads the truth (`wake_at`) and sends hints. A stale or missed read only delays one."""

    def __init__(self, runs: Runs, dispatcher: Dispatcher, clock: Clock, look_ahead: Ms) -> None:
        """`look_ahead` in ms: the tick's period and how late a tick may come."""
        self._runs = runs
        self._dispatcher = dispatcher
        self._clock = clock
        self._look_ahead = look_ahead

    def tick(self, cursor: str | None = None, budget: Ms | None = None) -> Swept:
        """Send the hints, page by page, from the cursor of an earlier tick on.

        There is no lower bound: what is overdue is found again. No page is begun after `budget`
        ms, if given; at least one is read.
        """
        began = self._clock.now()
        before = began + self._look_ahead
        sent = overdue = 0
        while True:
            found, cursor = retry_unavailable(
                self._clock, partial(self._runs.due, before, cursor, PAGE)
            )
            now = self._clock.now()
            for due in found:
                delay = min(max(0, due.wake_at - now), limits.MAX_HINT_DELAY)
                self._dispatcher.hint(due.subject, delay)
                overdue = max(overdue, now - due.wake_at)
            sent += len(found)
            if cursor is None or (budget is not None and self._clock.now() >= began + budget):
                return Swept(sent, overdue, cursor)
