"""What a step costs, and where its units go: a change that costs more is seen here first."""

import pytest
from rich.console import Console

from tools.bench.report import BILL_TEXTS, show_bill
from tools.bill.bill import TARGETS, bill, figures
from tools.bill.meter import Bill


def test_a_step_costs_what_was_promised() -> None:
    found = bill(runs=1)

    assert found["5"]["writes"] == {
        "create table": 1,
        "create runs-of-workflow": 1,
        "create due-runs": 1,
        "claim table": 1,
        "commit table": 5,
        "commit due-runs": 1,
    }
    assert found["marginal_write_units"] <= 1.3
    assert found["5"]["usd_per_million_steps"] <= 2.00
    assert found["50"]["usd_per_million_steps"] <= 1.00
    assert (found["5"]["sqs_requests"], found["5"]["lambda_invocations"]) == (3, 2)
    assert found["5"]["reads"] == {"api GetItem": 2.5, "worker GetItem": 1.5 + 5 * 0.5}
    pipeline = found["order_pipeline"]
    assert pipeline["lambda_invocations"] == 3  # before the sleep, and after it
    assert pipeline["write_units"] < 15
    assert found["fanout_child"] <= 1.3
    assert found["signal_wait"] <= 10
    assert found["signal_wait_writes"] == {
        "commit table": 1,  # the signal is taken; the wait began with the step before it
        "commit due-runs": 2,
        "deliver table": 3,  # the body is an item of its own
        "deliver due-runs": 2,
        "claim table": 1,
    }
    assert sum(found["signal_wait_writes"].values()) == found["signal_wait"]


def test_the_bill_says_of_every_figure_whether_its_target_was_reached() -> None:
    console = Console(record=True, width=120)
    met = dict.fromkeys(TARGETS, 0.5) | {"signal_wait": 10.01}

    show_bill(console, {**met, "targets": TARGETS, "signal_wait_writes": {"claim table": 1.0}})

    *lines, last, parts = console.export_text().splitlines()
    assert len(lines) == len(BILL_TEXTS) - 1
    assert all(line.endswith("reached") for line in lines)
    assert last == "AWS, write units of a wait for a signal of 1 KiB: 10.01 ≤ 10 missed"
    assert parts == "  of these: claim table 1"


def test_a_bill_is_its_units_times_their_prices() -> None:
    billed = Bill(
        write_units=20,
        read_units=8,
        sqs_requests=6,
        lambda_invocations=4,
        lambda_gb_seconds=0.03,
        writes={("create", "table"): 20},
        reads={("api", "GetItem"): 8},
    )
    found = figures(billed, runs=2, steps=5)
    # Ten steps: 20 x 0.625 = 12.5, 8 x 0.125 = 1, 6 x 0.40 = 2.4, 4 x 0.20 + 0.03 x 13.3334 =
    # 1.200002 and two requests at 1.00, all in millionths of a dollar.
    assert found["usd"] == pytest.approx(
        {"writes": 1.25, "reads": 0.1, "sqs": 0.24, "lambda": 0.1200002, "api": 0.2}
    )
    assert found["usd_per_million_steps"] == pytest.approx(1.9100002)
    assert (found["write_units"], found["read_units"]) == (10, 4)
    assert found["writes"] == {"create table": 10}
