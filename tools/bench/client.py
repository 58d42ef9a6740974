"""The benchmark's client: what it costs itself must not be what is measured."""

import http.client
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any

from examples.order_pipeline.api import Access, Api

PATIENCE = 60  # seconds


class Slow(Exception):
    """Runs did not come as far as they should within the time for them."""


class KeptApi(Api):
    """An Api over one connection that stays open, for one thread."""

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._kept = self._connection()

    def close(self) -> None:
        """Close the connection."""
        self._kept.close()

    def _connected(self) -> AbstractContextManager[http.client.HTTPConnection]:
        return nullcontext(self._kept)


def ended(api: Api, workflow: str, run_id: str) -> Any:
    """The detail of a run that succeeded. Slow if it does not within PATIENCE."""
    return _until(api, workflow, run_id, lambda run: run["status"] == "succeeded", wait=20)


def waiting(api: Api, workflow: str, run_id: str) -> Any:
    """The detail of a run that waits for a signal. Slow if it does not within PATIENCE."""
    return _until(api, workflow, run_id, lambda run: run["status"] == "waiting", wait=0)


def ms(at: str) -> int:
    """A time of the API in ms since the epoch."""
    return round(datetime.fromisoformat(at).timestamp() * 1000)


def _until(api: Api, workflow: str, run_id: str, there: Callable[[Any], bool], wait: int) -> Any:
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        run = api.run(workflow, run_id, wait=wait)
        if there(run):
            return run
        if run["finished_at"]:
            break
    raise Slow(f"run {run_id} of {workflow} is {run['status']}: {run['last_error']}")
