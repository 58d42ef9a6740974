"""`python -m tools.heat`: print what each partition key takes per second, the hottest first."""

import argparse
import sys

from rich.console import Console
from rich.table import Table

from stepwell_engine.limits import DUE_SHARDS, MAX_DUE_SHARDS
from tools.heat.heat import READS, WRITES, Key, heat


def main(arguments: list[str] | None = None) -> int:
    """0, also if something burns; 2 for figures that make no sense."""
    parser = argparse.ArgumentParser(prog="python -m tools.heat", description=__doc__)
    parser.add_argument("--runs", type=float, default=2_000, help="runs per second")
    parser.add_argument("--steps", type=float, default=10_000, help="steps per second")
    parser.add_argument("--due-shards", type=int, default=DUE_SHARDS, help="of the due index")
    chosen = parser.parse_args(arguments)
    if not 1 <= chosen.due_shards <= MAX_DUE_SHARDS:
        parser.error(f"--due-shards: should be 1 to {MAX_DUE_SHARDS}")
    try:
        keys = heat(chosen.runs, chosen.steps, chosen.due_shards)
    except ValueError as error:
        parser.error(str(error))
    console = Console(highlight=False)
    console.print(_table(keys))
    console.print(verdict(keys, chosen.runs), soft_wrap=True)
    return 0


def verdict(keys: list[Key], runs: float) -> str:
    """Which key is the first to burn, and at which rate."""
    first = min(keys, key=lambda key: key.runs_per_second)
    rate = f"{first.runs_per_second:,.0f} runs/s of this kind"
    if first.share > 1:
        return f"{first.where} {first.what} burns at {runs:,.0f} runs/s: it takes {rate}."
    return f"Nothing burns. The first to do so is {first.where} {first.what}, above {rate}."


def _table(keys: list[Key]) -> Table:
    table = Table(title=f"Per second and key; DynamoDB takes {WRITES:,} writes, {READS:,} reads")
    for name in ("table or index", "partition key"):
        table.add_column(name, no_wrap=True)
    for name in ("writes", "reads", "share", "up to runs/s"):
        table.add_column(name, justify="right", no_wrap=True)
    for key in keys:
        table.add_row(
            key.where,
            key.what[:30],
            f"{key.writes:,.1f}",
            f"{key.reads:,.1f}",
            f"{key.share:.0%}",
            "any" if key.alike is None else f"{key.runs_per_second:,.0f}",
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
