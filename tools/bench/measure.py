"""The measurements, each on a real host process with its default settings, over its HTTP API."""

import statistics
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.order_pipeline.api import Access, Api
from examples.order_pipeline.engine import Engine
from stepwell_engine.adapters.process.system import SystemClock
from tools.bench.client import PATIENCE, KeptApi, Slow, ended, ms
from tools.bench.disk import commit_ms, fsync_ms
from tools.bench.fanout import fanouts
from tools.bench.parked import compare
from tools.bench.receiver import receiver
from tools.bench.signals import signals

FUNCTIONS = Path(__file__).parent / "functions"
STEPS = 10
BEFORE, AFTER = 4, 4  # quick steps around the one in which a run is killed
CLIENTS = 4
SETTLED = 0.3  # seconds after which every free worker has taken a run
LOOK_EVERY = 0.01  # seconds


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many runs of each measurement, how many rounds of those with many runs, of which the
    median counts, how many writes of the disk's, how many children a fan-out has, beside how many
    parked runs one moves."""

    alone: int = 50
    at_once: int = 300
    webhooks: int = 150
    killed: int = 20
    rounds: int = 3
    writes: int = 200
    fanouts: int = 15
    children: int = 200
    signals: int = 60
    parked: int = 100_000


def measure(home: Path, sizes: Sizes) -> dict[str, Any]:
    """All figures. ms, seconds, steps per second. Slow, EngineFailed if they cannot be taken."""
    engine = Engine(home, FUNCTIONS)
    rounds = range(sizes.rounds)
    with receiver() as url:
        try:
            access = engine.start()
            disk = {
                "fsync_ms": fsync_ms(engine.data, sizes.writes),
                "sqlite_commit_ms": commit_ms(engine.data, sizes.writes),
            }
            _prepare(Api(access), url)
            alone = _alone(access, sizes.alone)
            fans = fanouts(access, sizes.fanouts, sizes.children)
            signalled = signals(access, sizes.signals)
            quick = [_at_once(access, "quick", "", sizes.at_once) for _ in rounds]
            webhooks = [_at_once(access, "webhooks", "webhook_", sizes.webhooks) for _ in rounds]
            killed = [_recovery(engine, home / f"gate{number}", sizes.killed) for number in rounds]
        except Slow as error:
            raise Slow(f"{error}; the host's last words:\n{engine.last_words()}") from error
        finally:
            engine.stop()
    return {
        **alone,
        **fans,
        **signalled,
        **_medians(quick),
        **_medians(webhooks),
        **_medians(killed),
        "recovery_left": f"{sizes.killed} runs × {1 + AFTER} steps",
        **compare(home, sizes.parked),
        **disk,
    }


def _medians(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}


def _prepare(api: Api, url: str) -> None:
    for function in ("nothing", "gate", "brief"):
        api.call("PUT", f"/functions/{function}", {"python": f"bench_steps:{function}"})
    api.publish("quick", {"steps": [_quick(number) for number in range(STEPS)]})
    webhooks = [
        {"key": f"s{number}", "kind": "webhook", "target": url, "payload": {"step": number}}
        for number in range(STEPS)
    ]
    api.publish("webhooks", {"steps": webhooks})


def _quick(number: int) -> dict[str, Any]:
    return {"key": f"s{number}", "kind": "function", "target": "nothing"}


def _alone(access: Access, count: int) -> dict[str, float]:
    """One run at a time, by the engine's own times and by a watch outside."""
    inside, outside = [], []
    with closing(KeptApi(access)) as api:
        for _ in range(count):
            began = time.perf_counter()
            run = ended(api, "quick", api.start("quick").body["id"])
            outside.append((time.perf_counter() - began) * 1000 / STEPS)
            inside.append((ms(run["finished_at"]) - ms(run["created_at"])) / STEPS)
    return {
        "ms_per_step": statistics.median(inside),
        "ms_per_step_outside": statistics.median(outside),
    }


def _at_once(access: Access, workflow: str, prefix: str, count: int) -> dict[str, float]:
    """Many runs from concurrent clients: from the first start, as the clients and as the engine
    see it, to the last finish."""
    clock = SystemClock()
    began = clock.now()
    with ThreadPoolExecutor(CLIENTS) as clients:
        shares = [len(range(client, count, CLIENTS)) for client in range(CLIENTS)]
        started = clients.map(lambda share: _start(access, workflow, share), shares)
        ids = [run_id for share in started for run_id in share]
    all_started = clock.now()
    with closing(KeptApi(access)) as api:
        runs = [ended(api, workflow, run_id) for run_id in ids]
    last = max(ms(run["finished_at"]) for run in runs)
    first = min(ms(run["created_at"]) for run in runs)
    steps = count * STEPS
    return {
        f"{prefix}steps_per_second": steps * 1000 / (last - began),
        f"{prefix}steps_per_second_engine": steps * 1000 / (last - first),
        f"{prefix}starts_per_second": count * 1000 / max(1, all_started - began),
    }


def _start(access: Access, workflow: str, count: int) -> list[str]:
    """One client's share of the starts: the ids of its runs."""
    with closing(KeptApi(access)) as api:
        return [api.start(workflow).body["id"] for _ in range(count)]


def _recovery(engine: Engine, gate: Path, count: int) -> dict[str, float]:
    """Runs are killed while they stand at a gate; from the start of the new process to the last
    finish."""
    gate.mkdir()
    api = Api(engine.access())
    api.publish("held", {"steps": _held(gate)})
    ids = [api.start("held").body["id"] for _ in range(count)]
    _wait_until_held(api, ids, gate)
    engine.kill()
    in_flight = len(list(gate.iterdir()))
    (gate / "open").touch()
    clock = SystemClock()
    spawned = clock.now()
    api = Api(engine.start())
    answered = clock.now()
    last = max(ms(ended(api, "held", run_id)["finished_at"]) for run_id in ids)
    return {
        "recovery_seconds": (last - spawned) / 1000,
        "recovery_first_answer_seconds": (answered - spawned) / 1000,
        "recovery_in_flight": in_flight,
    }


def _held(gate: Path) -> list[dict[str, Any]]:
    """Quick steps around one that is in flight until the gate is opened."""
    payload = {"folder": str(gate)}
    return [
        *(_quick(number) for number in range(BEFORE)),
        {"key": "pause", "kind": "sleep", "sleep_for": "1s"},
        {"key": "gate", "kind": "function", "target": "gate", "payload": payload},
        *(_quick(BEFORE + number) for number in range(AFTER)),
    ]


def _wait_until_held(api: Api, ids: Sequence[str], gate: Path) -> None:
    """Until every run has its sleep behind it, and every worker that can is in a gate."""
    ends = time.monotonic() + PATIENCE
    clock = SystemClock()
    while time.monotonic() < ends:
        steps = [api.run("held", run_id)["steps"] for run_id in ids]
        pauses = [run[BEFORE]["finished_at"] or run[BEFORE]["next_attempt_at"] for run in steps]
        if all(pauses) and max(ms(at) for at in pauses) < clock.now() and list(gate.iterdir()):
            time.sleep(SETTLED)
            return
        time.sleep(LOOK_EVERY)
    raise Slow(f"{len(ids)} runs did not come to their gates within {PATIENCE} s")
