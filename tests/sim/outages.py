"""A store that refuses everything for a while: locked, full, throttled, denied."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.sim.scheduler import EPOCH

_LIKELY = 0.25
_MOST = 3
_PARTIAL, _LARGE = 0.4, frozenset({"commit", "blob", "blob again"})  # no room for much
_CALM_LOG, _LOG = (2.7, 4.3), (2.7, 5.3)  # of a length in ms: half a second to 20 s, or 200 s


@dataclass(frozen=True)
class Outages:
    """When the store refuses, from and until, in true time."""

    windows: Sequence[tuple[int, int]]
    only: frozenset[str] | None = None  # the calls that it refuses; None: all of them

    def refuse(self, call: str, now: int) -> bool:
        """Whether the store refuses what is asked of it now."""
        if self.only is not None and call not in self.only:
            return False
        return any(begin <= now < end for begin, end in self.windows)


def draw_outages(random: Random, ends: int, calm: bool) -> Outages:
    """None, or some that begin before `ends` (ms after the start); short ones in a calm world."""
    if random.random() >= _LIKELY:
        return Outages(())
    low, high = _CALM_LOG if calm else _LOG
    windows = []
    for _ in range(1 + int(random.random() * _MOST)):
        begin = EPOCH + int(random.random() ** 2 * min(ends, 300_000))
        windows.append((begin, begin + int(10 ** (low + (high - low) * random.random()))))
    return Outages(windows, _LARGE if random.random() < _PARTIAL else None)
