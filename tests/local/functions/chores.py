"""Functions that the hosts under test call: each leaves a line in a file."""

import time
from pathlib import Path
from typing import Any


def note(event: dict[str, Any]) -> dict[str, Any]:
    """Append the step's key."""
    with Path(event["payload"]["log"]).open("a") as file:
        file.write(f"{event['step']}\n")
    return {"noted": event["step"]}


def note_and_wait(event: dict[str, Any]) -> dict[str, Any]:
    """Append the step's key, then wait until the file `gate` exists."""
    noted = note(event)
    while not Path(event["payload"]["gate"]).exists():
        time.sleep(0.005)
    return noted
