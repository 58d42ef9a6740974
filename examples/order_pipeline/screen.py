"""What the demo shows: a line for everything that happens, and the run's steps as they move."""

import time
from collections.abc import Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from examples.order_pipeline.checks import Check

# Mark and colour of a status; what is going on has a spinner for a mark.
STATUSES = {
    "pending": ("·", "dim"),
    "running": (None, "cyan"),
    "sleeping": (None, "blue"),
    "waiting": (None, "blue"),
    "retrying": ("↻", "yellow"),
    "succeeded": ("✓", "green"),
    "failed": ("✗", "red"),
    "cancelled": ("✗", "magenta"),
}


class Screen:
    """In a terminal, a table that lives below the lines; elsewhere, a line per change."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._run: Any = None
        self._up = True
        self._spinners: dict[str, Spinner] = {}
        self._live = Live(
            console=console, get_renderable=self._table, refresh_per_second=10, transient=False
        )

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def say(self, text: str, style: str = "") -> None:
        """One line about what has just happened."""
        elapsed = time.monotonic() - self._began
        line = Text.assemble((f"{elapsed:5.1f} s  ", "dim"), (text, style))
        self._console.print(line, soft_wrap=True)

    def show(self, run: Any, up: bool = True) -> None:
        """The run as it is known now, and whether the engine is up."""
        before = {} if self._run is None else {s["key"]: s["status"] for s in self._run["steps"]}
        self._run, self._up = run, up
        if self._console.is_terminal:
            return
        for step in run["steps"]:
            if step["status"] != before.get(step["key"], "pending"):
                self.say(f"    step {step['key']}: {step['status']}{_tries(step, ', attempt ')}")

    def results(self, checks: Sequence[Check]) -> None:
        """The table of checks."""
        table = Table(box=box.SIMPLE_HEAD, title="What was checked", title_justify="left")
        table.add_column("")
        table.add_column("Check", no_wrap=True)
        table.add_column("Seen")
        for check in checks:
            mark = Text("✓ holds", "green") if check.holds else Text("✗ fails", "bold red")
            table.add_row(mark, check.name, check.seen)
        self._console.print(table)

    def _table(self) -> Group | Text:
        if self._run is None:
            return Text()
        table = Table(box=box.ROUNDED, title_justify="left")
        for column in ("Step", "Kind", "Status", "Attempts", "Began", "Took"):
            table.add_column(column, justify="right" if column in ("Began", "Took") else "left")
        created = _seconds(self._run["created_at"])
        for step in self._run["steps"]:
            table.add_row(
                Text(step["key"], "bold"),
                Text(step["kind"], "dim"),
                self._status(step["key"], step["status"]),
                _tries(step),
                *_times(step, created),
            )
        engine = ("engine up", "green") if self._up else ("engine killed", "bold red")
        name = f" Run {self._run['id']} · {self._run['status']} · "
        return Group(Text.assemble((name, "bold"), engine), table)

    def _status(self, key: str, status: str) -> Text | Spinner:
        mark, style = STATUSES[status]
        if mark is None and self._up:
            # Kept from frame to frame, so that it turns.
            spinner = self._spinners.setdefault(key, Spinner("dots", style=style))
            spinner.update(text=Text(status, style))
            return spinner
        return Text(f"{mark or '‖'} {status}", style)


def _tries(step: Any, prefix: str = "") -> str:
    if step["kind"] == "sleep" or not step["attempt"]:
        return ""
    return f"{prefix}{step['attempt']} of {step['max_attempts']}"


def _times(step: Any, created: float) -> tuple[str, str]:
    """When a step began, counted from the start of the run, and how long it took."""
    if not step.get("started_at"):
        return "", ""
    began = _seconds(step["started_at"])
    ended = _seconds(step["finished_at"]) if step.get("finished_at") else None
    return _span(began - created), "" if ended is None else _span(ended - began)


def _span(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
