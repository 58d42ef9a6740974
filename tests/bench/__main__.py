"""`python -m tests.bench`: measure, print, and write build/bench.json."""

import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from tests.bench.measure import Sizes, measure
from tests.bench.report import document, show, write

RESULTS = Path("build/bench.json")


def main() -> int:
    """Always 0: a missed target is reported, not punished."""
    sizes = Sizes()
    console = Console(highlight=False)
    console.print("Measuring, which takes about a quarter of a minute ...")
    with tempfile.TemporaryDirectory(
        prefix="stepwell-bench-", ignore_cleanup_errors=True
    ) as folder:
        measured = document(measure(Path(folder), sizes), asdict(sizes))
    write(RESULTS, measured)
    show(console, measured)
    console.print(f"Written to {RESULTS}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
