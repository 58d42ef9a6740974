"""What the function steps of the crash script call: work that leaves a durable trace."""

import json
import os
import time
import uuid
from typing import Any

from stepwell_engine.adapters.process.system import SystemClock

_clock = SystemClock()


def work(event: dict[str, Any]) -> dict[str, Any]:
    """Note the beginning, take `ms`, note the end; the first `failing` attempts fail."""
    payload = event["payload"]
    execution = uuid.uuid4().hex
    _note(payload["log"], {"id": execution, "effect": event["idempotency_key"]})
    time.sleep(payload["ms"] / 1000)
    _note(payload["log"], {"id": execution})
    if event["attempt"] <= payload.get("failing", 0):
        raise RuntimeError(f"attempt {event['attempt']} fails, as it should")
    return {"execution": execution}


def _note(log: str, entry: dict[str, Any]) -> None:
    """Append one line, on disk before this returns."""
    line = json.dumps(entry | {"at": _clock.now()}) + "\n"
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, line.encode())
        os.fsync(file)
    finally:
        os.close(file)
