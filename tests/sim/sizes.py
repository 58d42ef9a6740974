"""How large a head may be, and worlds in which pages are small, so that short runs have many."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from random import Random

from stepwell_engine import limits
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.journal_codec import JournalCodec
from stepwell_engine.core.run.overflow import NOTHING_TAKEN
from tests.sim.scheduler import Violation

_PAGE_ABOVE = (0, 0, 150, 350)
_PAGES_OF_INDEX = (2, 2, 3)
_HISTORY_ATTEMPTS = (1, 2, 8)


def draw_limits(seed: int) -> Mapping[str, int]:
    """The limits that are other than the product's: none in three of four seeds."""
    own = Random(f"pages {seed}")
    if own.random() >= 0.25:
        return {}
    return {
        "PAGE_ABOVE": own.choice(_PAGE_ABOVE),
        "PAGES_OF_INDEX": own.choice(_PAGES_OF_INDEX),
        "HISTORY_ATTEMPTS": own.choice(_HISTORY_ATTEMPTS),
    }


def check_size(codec: JournalCodec, journal: Journal, data: bytes) -> None:
    """Recorded steps, and references to their pages, leave the head as they grow. Property 14.

    What is taken of an overflow stays, and sends no step away.
    """
    if journal.taken.ranges:
        data = min(data, codec.encode(replace(journal, taken=NOTHING_TAKEN)), key=len)
    if journal.records and len(data) > limits.PAGE_ABOVE:
        raise Violation(14, f"{len(journal.records)} finished steps in a head of {len(data)} bytes")
    levels = Counter(page.level for page in journal.pages)
    if any(count >= limits.PAGES_OF_INDEX for count in levels.values()):
        raise Violation(14, f"a head refers to so many pages of each level: {dict(levels)}")
