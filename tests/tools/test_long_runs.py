"""A step costs as much late in a long run as early, however seldom a worker holds the run."""

import pytest
from rich.console import Console

from stepwell_engine.limits import KIB
from tools.bench.report import show_long_runs
from tools.bill.long_runs import AT, CALLS, PER_LEASE, long_run, target


@pytest.mark.parametrize("per_lease", PER_LEASE)
def test_a_step_costs_what_was_promised_and_all_are_read_in_few_calls(per_lease: int) -> None:
    found = long_run(AT[-1], per_lease)

    assert list(found.units) == list(AT)
    assert max(found.units.values()) <= target(per_lease)
    assert found.largest_head <= KIB
    assert found.records == AT[-1]
    assert found.calls <= CALLS


def test_the_bench_says_whether_the_targets_were_reached() -> None:
    console = Console(record=True, width=120)
    measured = {
        "units": {"1": {"100": 5.25, "1000": 5.31}, "20": {"100": 1.5, "1000": 1.4}},
        "largest_head": 1024,
        "blobs_read": 2236,
        "calls": 25,
        "targets": {"units": {"1": 5.3, "20": 1.5}, "largest_head": 1024, "calls": 30},
    }

    show_long_runs(console, measured)

    assert console.export_text().splitlines() == [
        "AWS, write units of step 100 / 1000, 1 under one lease: "
        "5.25 / 5.31, at most 5.31 ≤ 5.3 missed",
        "AWS, write units of step 100 / 1000, 20 under one lease: "
        "1.50 / 1.40, at most 1.50 ≤ 1.5 reached",
        "AWS, bytes of the largest head of these: 1024.00 ≤ 1024 reached",
        "AWS, calls that read all 2236 pages of such a run: 25.00 ≤ 30 reached",
    ]
