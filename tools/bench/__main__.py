"""`python -m tools.bench`: measure, print, and write build/bench.json."""

import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from examples.order_pipeline.engine import EngineFailed
from tools.bench.client import Slow
from tools.bench.measure import Sizes, measure
from tools.bench.parked_dynamodb import compare
from tools.bench.report import (
    BILL,
    DYNAMODB,
    EMBEDDED,
    INBOXES,
    LONG,
    SLEEPS,
    START,
    document,
    show,
    show_bill,
    show_dynamodb,
    show_inboxes,
    show_long_runs,
    show_sleeps,
    show_start,
    write,
)
from tools.bench.sleeps import sleeps
from tools.bench.start import start
from tools.bill.bill import bill
from tools.bill.inboxes import inboxes
from tools.bill.long_runs import long_runs

RESULTS = Path("build/bench.json")
PARKED = 300  # runs in DynamoDB's tables


def main() -> int:
    """0, also if a target is missed; 1 if the figures cannot be taken."""
    sizes = Sizes()
    console = Console(highlight=False)
    console.print("Measuring, which takes about a minute ...")
    with tempfile.TemporaryDirectory(
        prefix="stepwell-bench-", ignore_cleanup_errors=True
    ) as folder:
        try:
            measured = document(measure(Path(folder), sizes), asdict(sizes))
        except (Slow, EngineFailed) as error:
            console.print(str(error), style="bold red", markup=False, soft_wrap=True)
            return 1
    write(RESULTS, EMBEDDED, measured)
    show(console, measured)
    on_dynamodb = compare(PARKED)
    write(RESULTS, DYNAMODB, on_dynamodb)
    show_dynamodb(console, on_dynamodb)
    billed = bill()
    write(RESULTS, BILL, billed)
    show_bill(console, billed)
    long = long_runs()
    write(RESULTS, LONG, long)
    show_long_runs(console, long)
    signalled = inboxes()
    write(RESULTS, INBOXES, signalled)
    show_inboxes(console, signalled)
    slept = sleeps()
    write(RESULTS, SLEEPS, slept)
    show_sleeps(console, slept)
    started = start()
    write(RESULTS, START, started)
    show_start(console, started)
    console.print(f"Written to {RESULTS}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
