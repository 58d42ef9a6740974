"""When an attempt may begin, and when it must be over."""

import pytest

from stepwell_engine.core.run.attempt import deadline_of, may_begin
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


@pytest.mark.parametrize("needed", [0, 30_000])
def test_an_attempt_begins_if_it_ends_before_what_expires_with_the_margin(needed: int) -> None:
    last = NOW + needed + CLOCK_MARGIN
    assert may_begin(NOW, needed, None)
    assert may_begin(NOW, needed, last + 1)
    assert not may_begin(NOW, needed, last)
