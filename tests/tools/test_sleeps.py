"""The hints that sleeps take."""

from rich.console import Console

from tools.bench.report import show_sleeps
from tools.bench.sleeps import SLEEPS, sleeps


def test_each_sleep_ends_in_time_with_few_hints() -> None:
    measured = sleeps()
    assert measured["late_ms"] == 0
    assert measured["refused"] <= measured["target"]
    assert measured["hints"] <= 4 * SLEEPS  # its own, and those of ticks that saw its end coming
    console = Console(record=True, width=200)
    show_sleeps(console, measured)
    assert f"hints for {SLEEPS} sleeps of ten minutes" in console.export_text()
