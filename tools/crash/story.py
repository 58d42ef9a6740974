"""Runs under fire: they are started while the host is killed and restarted at random moments."""

import contextlib
import http.client
import json
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from examples.order_pipeline.api import Api, Refused
from examples.order_pipeline.engine import Engine
from stepwell_engine.adapters.process.system import SystemClock
from tools.crash.evidence import Evidence, Execution, Kill, Sighting
from tools.crash.receiver import logging_receiver
from tools.crash.workflows import Plan, plans

LIVE = frozenset({"pending", "running", "sleeping", "waiting"})
FUNCTIONS = Path(__file__).parent / "functions"
STARTERS = 4  # clients at once
PATIENCE = 60  # seconds for an answer
# Seconds for all runs to end after the last kill: many are suspects by then, which go on in turn.
ENDING = 240
LONGEST_LIFE = 1.6  # seconds between the host's first answer and the next kill
SHORT_LIFE = 0.5  # seconds: a kill so soon after the start of the process hits its recovery
SHORT_LIVES = 0.2  # of all
STOPS = 0.2  # of the lives that are not short end with SIGTERM first: nothing runs again for it
REFUSALS = 0.15  # of them meet a store that another process locks
LONGEST_REFUSAL = 1.5  # seconds
PAUSE = 0.02  # seconds

T = TypeVar("T")


class Unfinished(Exception):
    """An answer did not come in time."""


def under_fire(home: Path, runs: int, kills: int, seed: int) -> Evidence:
    """Start `runs` runs, kill the host `kills` times meanwhile, wait for the end; what was seen."""
    log = home / "functions.log"
    log.touch()
    engine = Engine(home, FUNCTIONS)
    with logging_receiver() as receiver:
        try:
            api = Api(engine.start())
            workflows = plans(receiver.url, log)
            names = _prepare(api, workflows, runs)
            siege = Siege(engine, api, names, random.Random(seed))
            siege.run(kills)
            return siege.evidence(workflows, (*receiver.executions, *_function_log(log)))
        finally:
            engine.stop()


def _prepare(api: Api, workflows: dict[str, Plan], runs: int) -> dict[str, str]:
    """Register and publish everything; which workflow each idempotency key is for."""
    api.call("PUT", "/queues/mails", {})
    api.call("PUT", "/functions/work", {"python": "crash_steps:work"})
    for name, plan in workflows.items():
        api.publish(name, plan.definition)
    turns = ["orders", "imports", "orders", "imports", "doomed"]
    return {f"key-{number}": turns[number % len(turns)] for number in range(runs)}


class Siege:
    """One host, the runs on it, and what was seen of them."""

    def __init__(
        self, engine: Engine, api: Api, names: dict[str, str], chance: random.Random
    ) -> None:
        """`names`: the workflow of each idempotency key."""
        self._engine = engine
        self._api = api
        self._names = names
        self._chance = chance
        self._clock = SystemClock()
        self._answers: dict[str, list[str]] = {key: [] for key in names}
        self._ended: dict[str, Any] = {}
        self._kills: list[Kill] = []
        self._sightings: list[Sighting] = []

    def run(self, kills: int) -> None:
        """Start the runs bit by bit, kill and restart the host in between, wait for the end."""
        keys = list(self._names)
        with self._observer(), ThreadPoolExecutor(STARTERS) as starters:
            starts: list[Future[None]] = []
            for number in range(kills):
                batch = keys[number * len(keys) // kills : (number + 1) * len(keys) // kills]
                starts += [starters.submit(self._start, key) for key in batch]
                if self._live(first=number == 0) and self._chance.random() < STOPS:
                    self._engine.stop()
                    self._live(first=False)
                self._kill()
            self._engine.start()
            for start in starts:
                start.result()
            ends = time.monotonic() + ENDING
            while len(self._ended) < len(self._names) and time.monotonic() < ends:
                time.sleep(PAUSE)

    def evidence(self, workflows: dict[str, Plan], executions: tuple[Execution, ...]) -> Evidence:
        """What the host says at the end, with what was seen before; starts every key again."""
        for key in self._names:
            self._start(key)
        return Evidence(
            expected={key: workflows[name].ends for key, name in self._names.items()},
            answers=self._answers,
            runs=dict(self._details()),
            listed=[
                run["id"]
                for name in workflows
                for run in self._api.every(f"/workflows/{name}/runs")
            ],
            executions=executions,
            kills=self._kills,
            sightings=self._sightings,
            messages=self._api.every("/queues/mails/messages"),
        )

    def _details(self) -> Iterator[tuple[str, Any]]:
        """Every run that a start was answered with; one that is gone is left out."""
        for key, answers in self._answers.items():
            for run_id in set(answers):
                with contextlib.suppress(Refused):
                    yield run_id, self._api.run(self._names[key], run_id)

    def _live(self, first: bool) -> bool:
        """Let the host live for a random time; at first it is up already. Whether it has answered.

        Now and then another process locks its store meanwhile.
        """
        if not first and self._chance.random() < SHORT_LIVES:
            self._engine.spawn()
            time.sleep(self._chance.uniform(0, SHORT_LIFE))
            return False
        if not first:
            self._engine.start()
        if self._chance.random() < REFUSALS:
            self._refuse(self._chance.uniform(0, LONGEST_REFUSAL))
        time.sleep(self._chance.uniform(0, LONGEST_LIFE))
        return True

    def _refuse(self, seconds: float) -> None:
        file = self._engine.data / "stepwell.db"
        with contextlib.closing(sqlite3.connect(file, isolation_level=None, timeout=20)) as locking:
            locking.execute("BEGIN IMMEDIATE")
            time.sleep(seconds)
            locking.execute("ROLLBACK")

    def _kill(self) -> None:
        live = sum(bool(answers) for answers in self._answers.values()) - len(self._ended)
        at = self._clock.now()
        self._engine.kill()
        self._kills.append(Kill(at, self._clock.now(), live))

    def _start(self, key: str) -> None:
        """Start a run as a careful client does: again and again, until there is an answer."""
        answer = _answered(lambda: self._api.start(self._names[key], key))
        self._answers[key].append(answer.body["id"])

    @contextlib.contextmanager
    def _observer(self) -> Iterator[None]:
        """Look at every live run, over and over, and remember what is shown as recorded."""
        over = threading.Event()
        thread = threading.Thread(target=self._observe, args=(over,))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _observe(self, over: threading.Event) -> None:
        shown: set[tuple[str, str]] = set()
        while not over.wait(PAUSE):
            for key, answers in self._answers.items():
                if not answers or key in self._ended or over.is_set():
                    continue
                try:
                    run = self._api.run(self._names[key], answers[0])
                except (OSError, http.client.HTTPException, Refused):
                    continue  # the host is down; a run that is gone is found missing at the end
                for row in run["steps"]:
                    if row["finished_at"] and (run["id"], row["key"]) not in shown:
                        shown.add((run["id"], row["key"]))
                        self._sightings.append(Sighting(run["id"], row))
                if run["status"] not in LIVE:
                    self._ended[key] = run["status"]


def _answered(call: Callable[[], T]) -> T:
    """The answer of a host that may be down just now. Refused is an answer too, and raised."""
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        try:
            return call()
        except (OSError, http.client.HTTPException):
            time.sleep(PAUSE)
    raise Unfinished(f"no answer within {PATIENCE} s")


def _function_log(log: Path) -> list[Execution]:
    """The functions' executions; one without an end was in flight at a kill."""
    found: dict[str, Execution] = {}
    for line in log.read_text("utf-8").splitlines():
        entry = json.loads(line)
        if "effect" in entry:
            found[entry["id"]] = Execution(entry["effect"], entry["at"])
        else:
            begun = found[entry["id"]]
            found[entry["id"]] = Execution(begun.effect, begun.began, entry["at"])
    return list(found.values())
