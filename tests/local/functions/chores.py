"""Functions that the hosts under test call: each leaves a line in a file."""

import os
import signal
import time
from pathlib import Path
from typing import Any


def note(event: dict[str, Any]) -> dict[str, Any]:
    """Append the step's key."""
    with Path(event["payload"]["log"]).open("a") as file:
        file.write(f"{event['step']}\n")
    return {"noted": event["step"]}


def note_slowly(event: dict[str, Any]) -> dict[str, Any]:
    """Append the step's key, and take a while."""
    noted = note(event)
    time.sleep(0.4)
    return noted


def note_and_wait(event: dict[str, Any]) -> dict[str, Any]:
    """Append the step's key, then wait until the file `gate` exists."""
    noted = note(event)
    while not Path(event["payload"]["gate"]).exists():
        time.sleep(0.005)
    return noted


def fork(_event: dict[str, Any]) -> dict[str, Any]:
    """Leave a child behind that goes on."""
    child = os.fork()
    if child == 0:
        time.sleep(600)
        os._exit(0)
    return {"child": child}


def fork_and_return(_event: dict[str, Any]) -> dict[str, Any]:
    """Return twice, once in a child."""
    return {"child": os.fork()}


def note_and_kill(event: dict[str, Any]) -> None:
    """Append the step's key, then end the process in which it runs."""
    note(event)
    os.kill(os.getpid(), signal.SIGKILL)


def tell_process(event: dict[str, Any]) -> dict[str, Any]:
    """Say where it runs, then wait until the file `gate` exists."""
    score = Path("/proc/self/oom_score_adj")
    told = f"{os.getpid()} {score.read_text().strip() if score.exists() else 'none'}\n"
    with Path(event["payload"]["log"]).open("a") as file:
        file.write(told)
    while not Path(event["payload"]["gate"]).exists():
        time.sleep(0.005)
    return {"said": told}
