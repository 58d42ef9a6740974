"""The figures as a table, and as build/bench.json."""

import json
import os
import platform
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from tools.bench.fanout import STEP_MS, target_ms
from tools.bench.measure import Sizes

# Sections of the file.
EMBEDDED, DYNAMODB, BILL, LONG, START = "embedded", "dynamodb", "bill", "long_runs", "start"
SLEEPS = "sleeps"
INBOXES = "inboxes"
# What is to be reached on a machine with two cores: the figure, and whether less is better.
TARGETS: dict[str, tuple[float, bool]] = {
    "ms_per_step": (1.0, True),
    "steps_per_second": (3000.0, False),
    "webhook_steps_per_second": (500.0, False),
    "recovery_seconds": (1.0, True),
    "fanout_ms": (target_ms(Sizes().children), True),
    "signal_ms": (20.0, True),
    "parked_advance": (1.1, True),
    "parked_signal": (1.1, True),
    "parked_tick": (1.1, True),
    "parked_plans_changed": (0, True),
}
TEXTS = {
    "ms_per_step": "ms per step, one run at a time",
    "ms_per_step_outside": "  by a watch outside, HTTP included",
    "steps_per_second": "steps per second, many runs at once",
    "steps_per_second_engine": "  by the engine's own times",
    "starts_per_second": "  starts per second meanwhile",
    "webhook_steps_per_second": "webhook steps per second",
    "webhook_steps_per_second_engine": "  by the engine's own times",
    "webhook_starts_per_second": "  starts per second meanwhile",
    "recovery_seconds": "seconds from restart to last finish",
    "recovery_first_answer_seconds": "  to the first answer",
    "recovery_in_flight": "  steps in flight at the kill",
    "recovery_left": "  left to do",
    "fanout_ms": f"ms of a fan-out, {Sizes().children} × {STEP_MS} ms",
    "fanout_ratio": "  times what these alone would take",
    "signal_ms": "ms from a signal to the next step",
    "parked_advance": f"advance, {Sizes().parked:,} parked / none",
    "parked_advance_steps": "  steps of SQLite",
    "parked_signal": "signal",
    "parked_signal_steps": "  steps of SQLite",
    "parked_tick": "tick",
    "parked_tick_steps": "  steps of SQLite",
    "parked_plans": "query plans of all that",
    "parked_plans_changed": "  that parked runs change",
    "fsync_ms": "ms of a small append with fsync",
    "sqlite_commit_ms": "ms of a SQLite commit (WAL, FULL)",
}
BILL_TEXTS = {
    "usd_of_5_steps": "dollars per million steps, in runs of 5",
    "usd_of_50_steps": "dollars per million steps, in runs of 50",
    "marginal_write_units": "write units of one step more",
    "fanout_child": "write units of one child of a fan-out more",
    "signal_wait": "write units of a wait for a signal of 1 KiB",
}


def document(figures: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """What is written: the figures, the targets, and where they were measured."""
    return {
        **{
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in figures.items()
        },
        "targets": {name: target for name, (target, _) in TARGETS.items()},
        "sizes": dict(sizes),
        "machine": {
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "system": platform.system(),
        },
    }


def write(path: Path, section: str, measured: Mapping[str, Any]) -> None:
    """Put the document under the name of its section; what else is in the file stays."""
    found = json.loads(path.read_text("utf-8")) if path.exists() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(found | {section: measured}, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", "utf-8")


def show(console: Console, measured: Mapping[str, Any]) -> None:
    """The table."""
    machine = measured["machine"]
    table = Table(
        box=box.SIMPLE_HEAD,
        title=f"Embedded, every outcome on disk: {machine['cores']} cores, "
        f"Python {machine['python']}, SQLite {machine['sqlite']}",
        title_justify="left",
    )
    table.add_column("Measured")
    table.add_column("Figure", justify="right")
    table.add_column("Target", justify="right")
    table.add_column("")
    for name, text in TEXTS.items():
        value = measured[name]
        shown = f"{value:,.2f}" if isinstance(value, float) else str(value)
        table.add_row(text, shown, *_target(name, value))
    console.print(table)


def show_dynamodb(console: Console, measured: Mapping[str, Any]) -> None:
    """One line for each figure."""
    for name, target in measured["targets"].items():
        console.print(
            f"DynamoDB, {name.removeprefix('parked_')} of a run, {measured['sizes']['parked']} "
            f"parked / none: {_against(measured[name], target)}"
        )


def show_bill(console: Console, billed: Mapping[str, Any]) -> None:
    """One line for each figure, and where the units of a wait for a signal go."""
    for name, target in billed["targets"].items():
        console.print(f"AWS, {BILL_TEXTS[name]}: {_against(billed[name], target)}")
    parts = (f"{what} {units:g}" for what, units in billed["signal_wait_writes"].items())
    console.print(f"  of these: {', '.join(parts)}")


def show_long_runs(console: Console, measured: Mapping[str, Any]) -> None:
    """One line for each number of steps under one lease, and what a reader asks for."""
    targets = measured["targets"]
    for per_lease, units in measured["units"].items():
        shown = (f"{one:.2f}" for one in units.values())
        reached = _against(max(units.values()), targets["units"][per_lease])
        console.print(
            f"AWS, write units of step {' / '.join(units)}, {per_lease} under one lease: "
            f"{' / '.join(shown)}, at most {reached}"
        )
    head = _against(measured["largest_head"], targets["largest_head"])
    console.print(f"AWS, bytes of the largest head of these: {head}")
    calls = _against(measured["calls"], targets["calls"])
    console.print(f"AWS, calls that read all {measured['blobs_read']} pages of such a run: {calls}")


def show_inboxes(console: Console, measured: Mapping[str, Any]) -> None:
    """What a run costs beside pending signals, and what becomes of one costs."""
    run, targets = measured["run"], measured["targets"]
    most = (max(run.values()) - min(run.values())) / measured["steps"]
    console.print(
        f"AWS, write units of {measured['steps']} steps, {' / '.join(map(str, run))} signals of "
        f"200 bytes pending: {' / '.join(f'{units:g}' for units in run.values())}, "
        f"more for a step: {_against(most, targets['per_step'])}"
    )
    for name, units in measured["messages"].items():
        console.print(f"AWS, write units of a signal, {name} {_against(units, targets[name])}")


def show_sleeps(console: Console, measured: Mapping[str, Any]) -> None:
    """One line."""
    refused = _against(measured["refused"], measured["target"])
    console.print(
        f"AWS, hints for {measured['sleeps']} sleeps of ten minutes: {measured['hints']}, each "
        f"late by {measured['late_ms']:.0f} ms; claims refused: {refused}"
    )


def show_start(console: Console, started: Mapping[str, Any]) -> None:
    """One line."""
    ours, theirs = started["executor_import_seconds"], started["botocore_seconds"]
    ratio = _against(started["executor_import"], started["targets"]["executor_import"])
    console.print(
        f"AWS, CPU of the executor's import / of botocore and its first client: "
        f"{ours * 1000:.0f} ms / {theirs * 1000:.0f} ms = {ratio}"
    )


def _against(value: float, target: float) -> str:
    reached = "[green]reached[/green]" if value <= target else "[red]missed[/red]"
    return f"{value:.2f} ≤ {target:g} {reached}"


def _target(name: str, value: Any) -> tuple[str, str]:
    if name not in TARGETS:
        return "", ""
    target, less = TARGETS[name]
    reached = value <= target if less else value >= target
    sign = "≤" if less else "≥"
    return f"{sign} {target:,g}", "[green]reached[/green]" if reached else "[red]missed[/red]"
