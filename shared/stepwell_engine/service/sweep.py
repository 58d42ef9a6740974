"""The tick: hints for everything that is due, or will be before the next tick."""

from stepwell_engine import limits
from stepwell_engine.ports import Clock, Dispatcher, Runs, pages


class Sweep:
    """Reads the truth (`wake_at`) and sends hints. A stale or missed read only delays one."""

    def __init__(self, runs: Runs, dispatcher: Dispatcher, clock: Clock, look_ahead: int) -> None:
        """`look_ahead` in ms: the tick's period and how late a tick may come."""
        self._runs = runs
        self._dispatcher = dispatcher
        self._clock = clock
        self._look_ahead = look_ahead

    def tick(self) -> int:
        """Send the hints; how many. There is no lower bound: what is overdue is found again."""
        sent = 0
        now = self._clock.now()
        for due in pages(self._runs, now + self._look_ahead):
            delay = min(max(0, due.wake_at - now), limits.MAX_HINT_DELAY)
            self._dispatcher.hint(due.run_id, due.project, delay)
            sent += 1
        return sent
