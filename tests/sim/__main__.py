"""`python -m tests.sim --seeds 5000 --start 0`: exit code 1 if a property does not hold."""

import argparse
import sys
from collections.abc import Sequence

from tests.sim.coverage import ENOUGH, Coverage
from tests.sim.world import REAL, Engine, simulate


def main(
    arguments: Sequence[str] | None = None, engine: Engine = REAL, enough: int = ENOUGH
) -> int:
    """Run the seeds; print the first violation with the events before it, and the coverage.

    Of `enough` seeds or more, every crash point must have been hit.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=_number, default=5_000, help="how many (default: 5000)")
    parser.add_argument("--start", type=_number, default=0, help="the first one (default: 0)")
    given = parser.parse_args(arguments)
    coverage = Coverage()
    found = simulate(range(given.start, given.start + given.seeds), engine, coverage)
    print(f"{given.seeds} seeds from {given.start} on: no violation" if found is None else found)
    print(coverage.line())
    incomplete = given.seeds >= enough and bool(coverage.missed())
    return 1 if found is not None or incomplete else 0


def _number(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is negative")
    return number


if __name__ == "__main__":
    sys.exit(main())
