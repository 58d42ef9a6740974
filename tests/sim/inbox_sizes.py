"""How small inboxes are in a seed, and how many signals come to them at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from unittest.mock import patch

from stepwell_engine import limits
from stepwell_engine.core.run.overflow import NOTHING_READ
from stepwell_engine.service.worker import leased_run
from tests.sim.definitions import SIGNALS
from tests.sim.workload import Slot

_BURST_MS = 120_000  # within which bursts begin
_SPREADS = (1, 20, 2_000)  # of the signals of a burst, in ms


@dataclass(frozen=True)
class InboxSizes:
    """Limits of a seed, and the random generator that they come from: the world's own stays put."""

    inline: int  # messages in a head
    most: int  # pending signals
    page: int  # numbers read first of an overflow
    older: float  # how often an older version delivers
    random: Random

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """While the seed runs."""
        with (
            patch.object(limits, "INLINE_MESSAGES", self.inline),
            patch.object(limits, "MAX_PENDING_SIGNALS", self.most),
            patch.object(leased_run, "NOTHING_READ", replace(NOTHING_READ, most=self.page)),
        ):
            yield

    def is_older(self) -> bool:
        """Whether an older version takes this delivery."""
        return self.random.random() < self.older

    def crowd(self, slots: tuple[Slot, ...]) -> tuple[Slot, ...]:
        """The slots, in some seeds with bursts of signals."""
        if self.random.random() < 0.7:
            return slots
        return tuple(replace(one, signals=(*one.signals, *self._bursts())) for one in slots)

    def _bursts(self) -> Iterator[tuple[int, str]]:
        for _ in range(self.random.randrange(1, 5)):
            begin = int(self.random.random() ** 2 * _BURST_MS)
            spread = self.random.choice(_SPREADS)
            for _ in range(self.random.randrange(1, 6)):
                yield begin + self.random.randrange(spread), self.random.choice(SIGNALS)


def draw_sizes(seed: int) -> InboxSizes:
    """Of a seed: the product's in half of the seeds."""
    random = Random(f"inbox {seed}")
    return InboxSizes(
        inline=random.choice((0, 1, 2, *(limits.INLINE_MESSAGES,) * 3)),
        most=random.choice((3, *(limits.MAX_PENDING_SIGNALS,) * 5)),
        page=random.choice((1, 2, NOTHING_READ.most)),
        older=random.choice((0.0, 0.0, 0.0, 0.5)),
        random=random,
    )
