"""Inboxes in DynamoDB that are soon full: a thousand messages of one item take moto minutes."""

from typing import Final

import pytest

from stepwell_engine.adapters.dynamodb import inbox
from stepwell_engine.limits import MAX_PENDING_SIGNALS

ROOM: Final = 20  # signals


def small_inboxes(patch: pytest.MonkeyPatch) -> int:
    """From now on an inbox takes so many signals, instead of the product's limit."""
    assert vars(inbox)["MAX_PENDING_SIGNALS"] == MAX_PENDING_SIGNALS
    patch.setattr(inbox, "MAX_PENDING_SIGNALS", ROOM)
    return ROOM
