"""Calls of the store by a worker that has something in hand: made until the store answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from stepwell_engine import limits
from stepwell_engine.core.values.units import EpochMs, Ms, RunId
from stepwell_engine.errors import NewerFormat, StoreError, Unavailable, Unstorable
from stepwell_engine.ports import Clock
from stepwell_engine.service.runs.store_refusals import StoreRefusals

T = TypeVar("T")

FIRST_PAUSE: Final = 20  # ms; doubled each time
LONGEST_PAUSE: Final = 2 * limits.SECOND  # an outcome in hand follows the store's return so soon


@dataclass(frozen=True, slots=True)
class Persistence:
    """Repeats a call for as long as the process lives, or until `ends` (ms since the epoch).

    What a worker has in hand (the outcome of an attempt) is nowhere else: an attempt whose
    outcome is lost is made again. Every write is conditional, and so safe to repeat.
    """

    clock: Clock
    refusals: StoreRefusals
    run_id: RunId
    ends: EpochMs | None

    def __call__(self, call: Callable[[], T]) -> T:
        """The call's result. Unavailable once `ends` is over; Unstorable, NewerFormat at once."""
        pause: Ms = FIRST_PAUSE
        refused = False
        try:
            while True:
                try:
                    return call()
                except (NewerFormat, Unstorable):
                    raise
                except StoreError as error:
                    refused = True
                    self.refusals.note(self.run_id, error.reason, self.clock.now())
                    if self.ends is not None and self.clock.now() + pause >= self.ends:
                        raise Unavailable(f"the store refuses: {error}", error.reason) from error
                self.clock.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        finally:
            if refused:
                self.refusals.forget(self.run_id)
