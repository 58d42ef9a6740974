"""What the function steps of the benchmark call, in the host's own process."""

import time
from pathlib import Path
from typing import Any

LOOK_EVERY = 0.005  # seconds
BRIEF = 0.005  # seconds


def nothing(event: dict[str, Any]) -> dict[str, Any]:
    """A step that costs nothing but the engine's own work."""
    return {"step": event["step"]}


def brief(event: dict[str, Any]) -> None:
    """A step of a fan-out: it takes a moment, and nothing of the machine."""
    time.sleep(BRIEF)


def gate(event: dict[str, Any]) -> dict[str, Any]:
    """A step that is in flight until the folder has a file `open`."""
    folder = Path(event["payload"]["folder"])
    (folder / event["run_id"]).touch()
    while not (folder / "open").exists():
        time.sleep(LOOK_EVERY)
    return {"step": event["step"]}
