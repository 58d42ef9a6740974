"""How soon a signal is followed by the next step, on a running host."""

import statistics
from contextlib import closing

from examples.order_pipeline.api import Access, Api
from stepwell_engine.adapters.process.system import SystemClock
from tools.bench.client import KeptApi, ended, ms, waiting

WORKFLOW = "signalled"
STEPS = [
    {"key": "wait", "kind": "wait_for_signal", "signal": "approved"},
    {"key": "next", "kind": "function", "target": "nothing"},
]


def signals(access: Access, count: int) -> dict[str, float]:
    """One parked run at a time: the median of the ms from the request to the step's start."""
    with closing(KeptApi(access)) as api:
        api.publish(WORKFLOW, {"steps": STEPS})
        return {"signal_ms": statistics.median(_resumed(api) for _ in range(count))}


def _resumed(api: Api) -> float:
    """The ms of one run."""
    run_id = api.start(WORKFLOW).body["id"]
    waiting(api, WORKFLOW, run_id)
    sent = SystemClock().now()
    path = f"/workflows/{WORKFLOW}/runs/{run_id}/signals"
    api.call("POST", path, {"signal": "approved", "payload": {"by": "u_123"}})
    after = ended(api, WORKFLOW, run_id)["steps"][1]
    return ms(after["started_at"]) - sent
