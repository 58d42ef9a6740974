"""What an executor's start costs is measured beside what cannot be spared."""

from rich.console import Console

from tools.bench.report import show_start
from tools.bench.start import TARGET, start


def test_the_start_of_an_executor_is_measured() -> None:
    found = start(rounds=1)
    assert found["executor_import_seconds"] > 0
    assert found["botocore_seconds"] > 0
    assert found["executor_import"] == found["executor_import_seconds"] / found["botocore_seconds"]
    console = Console(record=True, width=200)
    show_start(console, {**found, "executor_import": TARGET})
    assert console.export_text().rstrip().endswith("= 1.21 ≤ 1.2069 reached")
