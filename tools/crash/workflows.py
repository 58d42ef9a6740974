"""The workflows of the crash script, and how their runs must end."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Plan:
    """A definition and the status in which its runs must end."""

    definition: Any
    ends: str


def plans(receiver: str, log: Path) -> dict[str, Plan]:
    """By workflow name. `log` is where the functions leave their traces."""
    orders = [
        _webhook("charge", f"{receiver}/ok"),
        _function("reserve", log, ms=40),
        {"key": "nap", "kind": "sleep", "sleep_for": "300ms"},
        _webhook("flaky", f"{receiver}/flaky"),
        _function("pack", log, ms=20),
        {"key": "mail", "kind": "enqueue", "target": "mails", "payload": {"template": "sent"}},
        _webhook("confirm", f"{receiver}/ok"),
    ]
    imports = [
        _function("fetch", log, ms=60, failing=1),
        {"key": "pause", "kind": "sleep", "sleep_for": "500ms"},
        {"key": "mail", "kind": "enqueue", "target": "mails", "payload": {"template": "done"}},
        _webhook("done", f"{receiver}/ok"),
    ]
    doomed = [
        _webhook("begin", f"{receiver}/ok"),
        _webhook("broken", f"{receiver}/broken") | {"max_attempts": 2},
        _function("never", log, ms=0),
    ]
    return {
        "orders": Plan({"steps": orders}, "succeeded"),
        "imports": Plan({"steps": imports}, "succeeded"),
        "doomed": Plan({"steps": doomed}, "failed"),
    }


def _webhook(key: str, url: str) -> dict[str, Any]:
    return {"key": key, "kind": "webhook", "target": url, "payload": {}, "max_attempts": 5}


def _function(key: str, log: Path, ms: int, failing: int = 0) -> dict[str, Any]:
    payload = {"log": str(log), "ms": ms, "failing": failing}
    return {"key": key, "kind": "function", "target": "work", "payload": payload}
