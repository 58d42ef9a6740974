"""Inboxes in DynamoDB that are soon full: a thousand deliveries take moto too long."""

from typing import Final

import pytest

from stepwell_engine import limits

ROOM: Final = 20  # signals
MOST: Final = 1_000  # of the product


def small_inboxes(patch: pytest.MonkeyPatch) -> int:
    """From now on an inbox takes so many signals, instead of the product's limit."""
    assert limits.MAX_PENDING_SIGNALS == MOST
    patch.setattr(limits, "MAX_PENDING_SIGNALS", ROOM)
    return ROOM
