"""The tick: hints for everything that is due, or will be before the next tick."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from stepwell_engine import limits
from stepwell_engine.core.values.units import EpochMs, Ms
from stepwell_engine.ports import Clock, Dispatcher, Runs
from stepwell_engine.service.retry_unavailable import retry_unavailable

PAGE: Final = 100
_OFTEN: Final = 4 * limits.MINUTE  # of an age: until then every minute, from then on every four


@dataclass(frozen=True, slots=True)
class Swept:
    """What a tick did. `overdue` is the age in ms of the most overdue entry, 0 if there is none;
    `cursor` where another call should go on, None if everything was seen; `began`: the tick's time,
    for that call, or for the next tick as its `since`.
    """

    hints: int
    overdue: Ms
    cursor: str | None
    began: EpochMs


class Sweep:
    """Reads the truth (`wake_at`) and sends hints. A stale or missed read only delays one."""

    def __init__(self, runs: Runs, dispatcher: Dispatcher, clock: Clock, look_ahead: Ms) -> None:
        """`look_ahead` in ms: the tick's period and how late a tick may come. ValueError above
        what a hint can be delayed by.
        """
        if look_ahead > limits.MAX_HINT_DELAY:
            raise ValueError(f"a tick looks at most {limits.MAX_HINT_DELAY} ms ahead")
        self._runs = runs
        self._dispatcher = dispatcher
        self._clock = clock
        self._look_ahead = look_ahead

    def tick(
        self,
        cursor: str | None = None,
        budget: Ms | None = None,
        *,
        since: EpochMs | None = None,
        began: EpochMs | None = None,
    ) -> Swept:
        """Send the hints, page by page, from the cursor of an earlier call on.

        There is no lower bound: what is overdue is found again. It is hinted when its age passes
        0, 1, 2, 3, 4 minutes, and then every four: so no hint that was lost delays it for longer,
        and an outage does not end in a flood. `since`: when the last tick began that saw
        everything, so that one that is late, or was missed, passes over no age; None: hint all.
        `began` is that of the call before. No page is begun after `budget` ms, if given; at least
        one is read.
        """
        starts = self._clock.now()
        began = starts if began is None else began
        if since is not None and since > began:
            since = None  # the clock was set back
        before = began + self._look_ahead
        sent = overdue = 0
        while True:
            found, cursor = retry_unavailable(
                self._clock, partial(self._runs.due, before, cursor, PAGE)
            )
            now = self._clock.now()
            for due in found:
                overdue = max(overdue, now - due.wake_at)
                if since is None or self._is_due(due.wake_at, since, began):
                    self._dispatcher.hint(due.subject, max(0, due.wake_at - now))
                    sent += 1
            if cursor is None or (budget is not None and self._clock.now() >= starts + budget):
                return Swept(sent, overdue, cursor, began)

    def _is_due(self, wake_at: EpochMs, since: EpochMs, now: EpochMs) -> bool:
        """Whether a hint is sent now. For what is to come: when it comes into view, and last."""
        if wake_at > now:
            return wake_at > since + self._look_ahead or wake_at <= now + limits.TICK
        return ages_passed(now - wake_at) > ages_passed(since - wake_at)


def ages_passed(age: Ms) -> int:
    """How many of the ages at which what is overdue is hinted lie at or below an age."""
    if age < 0:
        return 0
    if age < _OFTEN:
        return age // limits.MINUTE + 1
    return _OFTEN // limits.MINUTE + age // _OFTEN
