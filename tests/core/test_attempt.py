"""When an attempt must be over."""

import pytest

from stepwell_engine.core.run.attempt import deadline_of
from stepwell_engine.limits import CLOCK_MARGIN

NOW = 1_700_000_000_000
END = NOW + 30_000


@pytest.mark.parametrize(
    ("lease", "gate", "deadline"),
    [
        (END + CLOCK_MARGIN, None, END),
        (END + CLOCK_MARGIN - 1, None, END - 1),
        (END + 60_000, None, END),
        (END + 60_000, END + CLOCK_MARGIN, END),
        (END + 60_000, END + CLOCK_MARGIN - 1, END - 1),
        (END + CLOCK_MARGIN - 2, END + CLOCK_MARGIN - 1, END - 2),
        (NOW, None, NOW - CLOCK_MARGIN),
    ],
)
def test_the_deadline_is_the_earliest_of_timeout_lease_and_gate(
    lease: int, gate: int | None, deadline: int
) -> None:
    assert deadline_of(NOW, 30_000, lease, gate) == deadline
