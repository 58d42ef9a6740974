"""`python -m tools.crash`: kill the host at random moments of many runs, then check the traces.

Now and then it is stopped in order, its store refuses for a while, or a step ends it; then it is
started again, as a supervisor would.
"""

import argparse
import secrets
import shutil
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from examples.order_pipeline.engine import EngineFailed
from tools.crash.evidence import Evidence, How
from tools.crash.rows import Verdict
from tools.crash.story import Unfinished, under_fire
from tools.crash.verify import interrupted, repeats, verify

SHOWN = 10  # violations of one property


def main(arguments: Sequence[str]) -> int:
    """0 if every property held, 1 if not."""
    parser = argparse.ArgumentParser(prog="python -m tools.crash")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--keep", action="store_true", help="keep the host's data and log")
    options = parser.parse_args(arguments)
    console = Console(highlight=False)
    console.print(f"{options.runs} runs, {options.kills} kills, seed {options.seed}")
    home = Path(tempfile.mkdtemp(prefix="stepwell-crash-"))
    try:
        evidence = under_fire(home, options.runs, options.kills, options.seed)
    except (Unfinished, EngineFailed) as error:
        console.print(f"{error} (seed {options.seed})", style="bold red", markup=False)
        return 1
    finally:
        if options.keep:
            console.print(f"The data is kept in {home}.", soft_wrap=True)
        else:
            shutil.rmtree(home, ignore_errors=True)
    verdicts = verify(evidence)
    report(console, evidence, verdicts)
    violated = any(verdict.violations for verdict in verdicts)
    console.print(
        f"{'VIOLATED' if violated else 'Every property held'}: --runs {options.runs} "
        f"--kills {options.kills} --seed {options.seed}",
        style="bold red" if violated else "bold green",
    )
    return int(violated)


def report(console: Console, evidence: Evidence, verdicts: Sequence[Verdict]) -> None:
    """What happened, and the table of properties."""
    live = [kill.live for kill in evidence.kills] or [0]
    console.print(
        f"{_ends(evidence)}, which hit {min(live)} to {max(live)} live runs "
        f"(median {statistics.median(live):g}) and {interrupted(evidence)} executions in flight; "
        f"{len(evidence.executions)} executions, {repeats(evidence)} of them repeats, "
        f"{len(evidence.messages)} messages"
    )
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("Property")
    table.add_column("Cases", justify="right")
    table.add_column("Violations", justify="right")
    for verdict in verdicts:
        style = "bold red" if verdict.violations else "green"
        table.add_row(
            verdict.name, str(verdict.cases), f"[{style}]{len(verdict.violations)}[/{style}]"
        )
    console.print(table)
    for verdict in verdicts:
        for violation in verdict.violations[:SHOWN]:
            console.print(f"{verdict.name}: {violation}", markup=False, soft_wrap=True)


def _ends(evidence: Evidence) -> str:
    """How often the host ended, in which ways."""
    ways = Counter(kill.how for kill in evidence.kills)
    return "The host was " + ", ".join(f"{ways[how]} times {how}" for how in How)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
