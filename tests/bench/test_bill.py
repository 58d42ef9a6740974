"""What a step costs, and where its units go: a change that costs more is seen here first."""

import pytest

from stepwell_engine.adapters.aws.meter import Bill
from tests.bench.bill import bill, figures


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
