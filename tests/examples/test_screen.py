"""What the demo shows in a terminal and outside of one."""

import io
from typing import Any

from rich.console import Console

from examples.order_pipeline.checks import Check
from examples.order_pipeline.screen import Screen


def test_outside_of_a_terminal_every_change_is_one_plain_line() -> None:
    shown = io.StringIO()
    with Screen(Console(file=shown, width=100)) as screen:
        screen.show(_run("running", None))
        screen.show(_run("running", None))
        screen.show(_run("succeeded", "2027-01-15T08:00:00.250Z"))
        screen.results([Check("it holds", True, "seen"), Check("it fails", False, "not seen")])

    lines = [line.partition(" s  ")[2].strip() for line in shown.getvalue().splitlines()[:2]]
    assert lines == [
        "step charge: running, attempt 1 of 5",
        "step charge: succeeded, attempt 1 of 5",
    ]
    assert "✓ holds   it holds" in shown.getvalue()
    assert "✗ fails   it fails" in shown.getvalue()
    assert "\x1b" not in shown.getvalue()


def test_in_a_terminal_a_table_shows_status_attempts_times_and_the_engine() -> None:
    shown = io.StringIO()
    with Screen(Console(file=shown, width=100, force_terminal=True)) as screen:
        screen.show(_run("succeeded", "2027-01-15T08:00:00.250Z"), up=False)

    text = shown.getvalue()
    for part in ("Run run-1", "engine killed", "charge", "✓ succeeded", "1 of 5", "50 ms"):
        assert part in text
    assert "200 ms" in text


def _run(status: str, finished: str | None) -> Any:
    step = {
        "key": "charge",
        "kind": "webhook",
        "status": status,
        "attempt": 1,
        "max_attempts": 5,
        "started_at": "2027-01-15T08:00:00.050Z",
        "finished_at": finished,
    }
    return {
        "id": "run-1",
        "workflow": "order-pipeline",
        "status": status,
        "created_at": "2027-01-15T08:00:00.000Z",
        "steps": [step],
    }
