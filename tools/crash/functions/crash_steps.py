"""What the function steps of the crash script call: each tells the receiver, which survives."""

import ctypes
import http.client
import json
import os
import resource
import signal
import time
import uuid
from typing import Any
from urllib.parse import urlsplit


def work(event: dict[str, Any]) -> dict[str, Any]:
    """Note the beginning, take `ms`, note the end; the first `failing` attempts fail."""
    payload = event["payload"]
    execution = uuid.uuid4().hex
    begin(event, execution, os.getpid())
    time.sleep(payload["ms"] / 1000)
    _note(payload["notes"], {"id": execution})
    if event["attempt"] <= payload.get("failing", 0):
        raise RuntimeError(f"attempt {event['attempt']} fails, as it should")
    return {"execution": execution}


def poison(event: dict[str, Any]) -> None:
    """Note the beginning, then end the process, in the way that the payload names."""
    begin(event, uuid.uuid4().hex, os.getpid())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    match event["payload"]["how"]:
        case "kill":  # as the kernel does for want of memory
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os._exit(0)
        case "fault":
            ctypes.string_at(0)
        case "abort":
            os.abort()


def begin(event: dict[str, Any], execution: str, process: int) -> None:
    """Note that a step begins to run in a process."""
    note = {"id": execution, "effect": event["idempotency_key"], "process": process}
    _note(event["payload"]["notes"], note)


def _note(url: str, note: dict[str, Any]) -> None:
    """Tell the receiver, and return when it knows."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.netloc, timeout=20)
    try:
        connection.request("POST", address.path, json.dumps(note))
        connection.getresponse().read()
    finally:
        connection.close()
