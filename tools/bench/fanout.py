"""How fast a wide fan-out drains, by the engine's own times, on a running host."""

import statistics
from contextlib import closing

from examples.order_pipeline.api import Access, Api
from stepwell_engine.limits import CHILDREN_AT_ONCE
from tools.bench.client import KeptApi, ended, ms

WORKFLOW = "wide"
STEP_MS = 5  # of a child, see functions/bench_steps.py
SLACK, OVERHEAD_MS = 1.5, 100  # what a fan-out may take: so often its ideal, and so much more


def ideal_ms(children: int) -> float:
    """What the children take if the engine itself takes no time."""
    return children / CHILDREN_AT_ONCE * STEP_MS


def target_ms(children: int) -> float:
    """What they may take at most."""
    return SLACK * ideal_ms(children) + OVERHEAD_MS


def fanouts(access: Access, count: int, children: int) -> dict[str, float]:
    """One run at a time: the median of the ms from a fan-out's start to the end of its join."""
    with closing(KeptApi(access)) as api:
        steps = [
            {"key": f"c{number}", "kind": "function", "target": "brief"}
            for number in range(children)
        ]
        fanout = {"key": "all", "kind": "fanout", "children": steps}
        api.publish(WORKFLOW, {"steps": [fanout, {"key": "joined", "kind": "join"}]})
        took = [_drained(api) for _ in range(count)]
    median = statistics.median(took)
    return {"fanout_ms": median, "fanout_ratio": median / ideal_ms(children)}


def _drained(api: Api) -> float:
    """The ms of one run."""
    run_id = api.start(WORKFLOW).body["id"]
    run = ended(api, WORKFLOW, run_id)
    last, cursor = run["steps"][-1], run["next_steps_cursor"]
    while cursor is not None:
        page = api.call("GET", f"/workflows/{WORKFLOW}/runs/{run_id}/steps?cursor={cursor}").body
        last, cursor = page["items"][-1], page["next_cursor"]
    return ms(last["finished_at"]) - ms(run["steps"][0]["started_at"])
