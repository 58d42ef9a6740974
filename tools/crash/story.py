"""Runs under fire: they are started while the host is killed and restarted at random moments."""

import contextlib
import http.client
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

from examples.order_pipeline.api import Api, Refused
from examples.order_pipeline.engine import Engine
from tools.crash.evidence import Evidence, Execution, Sighting
from tools.crash.receiver import logging_receiver
from tools.crash.supervisor import Supervisor
from tools.crash.workflows import Plan, names, plans

LIVE = frozenset({"pending", "running", "sleeping", "waiting"})
FUNCTIONS = Path(__file__).parent / "functions"
STARTERS = 4  # clients at once
PATIENCE = 60  # seconds for an answer
# Seconds for all runs to end after the last kill: many are suspects by then, which go on in turn.
ENDING = 240
LONGEST_LIFE = 1.6  # seconds between the host's first answer and the next kill
SHORT_LIFE = 0.5  # seconds: a kill so soon after the start of the process hits its recovery
SHORT_LIVES = 0.2  # of all
STOPS = 0.3  # of the lives that are not short end in order first, half of these in a hurry
REFUSALS = 0.25  # of them meet a store that another process locks, or a full disk
LONGEST_REFUSAL = 7  # seconds: longer than SQLite waits for a lock
AFTER_REFUSAL = 5  # seconds: by then what was in hand is recorded, or lost
PAUSE = 0.02  # seconds

T = TypeVar("T")


class Unfinished(Exception):
    """An answer did not come in time."""


def under_fire(home: Path, runs: int, kills: int, seed: int) -> Evidence:
    """Start `runs` runs, kill the host `kills` times meanwhile, wait for the end; what was seen."""
    chance = random.Random(seed)
    engine = Engine(home, FUNCTIONS)
    with logging_receiver() as receiver:
        try:
            api = Api(engine.start())
            workflows = plans(receiver.url)
            _prepare(api, workflows)
            chosen = {f"key-{number}": name for number, name in enumerate(names(runs, chance))}
            siege = Siege(engine, api, chosen, chance)
            siege.run(kills)
            return siege.evidence(workflows, receiver.executions)
        finally:
            engine.stop()


def _prepare(api: Api, workflows: dict[str, Plan]) -> None:
    """Register and publish everything."""
    api.call("PUT", "/queues/mails", {})
    api.call("PUT", "/functions/work", {"python": "crash_steps:work"})
    api.call("PUT", "/functions/poison", {"python": "crash_steps:poison"})
    command = [sys.executable, str(FUNCTIONS / "crash_command.py")]
    api.call("PUT", "/functions/command", {"command": command})
    for name, plan in workflows.items():
        api.publish(name, plan.definition)


class Siege:
    """One host, the runs on it, and what was seen of them."""

    def __init__(
        self, engine: Engine, api: Api, names: dict[str, str], chance: random.Random
    ) -> None:
        """`names`: the workflow of each idempotency key."""
        self._api = api
        self._names = names
        self._chance = chance
        self._host = Supervisor(engine, self._count_live)
        self._answers: dict[str, list[str]] = {key: [] for key in names}
        self._ended: dict[str, Any] = {}
        self._sightings: list[Sighting] = []

    def run(self, kills: int) -> None:
        """Start the runs bit by bit, kill and restart the host in between, wait for the end."""
        keys = list(self._names)
        with (
            self._host.watching(),
            self._observer(),
            ThreadPoolExecutor(STARTERS) as starters,
        ):
            starts: list[Future[None]] = []
            for number in range(kills):
                batch = keys[number * len(keys) // kills : (number + 1) * len(keys) // kills]
                starts += [starters.submit(self._start, key) for key in batch]
                if self._live(first=number == 0) and self._chance.random() < STOPS:
                    self._host.stop(hurry=self._chance.random() < 1 / 2)
                    self._live(first=False)
                self._host.kill()
            self._host.spawn()
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
            kills=self._host.kills,
            refusals=self._host.refusals,
            sightings=self._sightings,
            messages=self._api.every("/queues/mails/messages"),
            poison={
                key: step
                for key, name in self._names.items()
                if (step := workflows[name].poison) is not None
            },
        )

    def _details(self) -> Iterator[tuple[str, Any]]:
        """Every run that a start was answered with; one that is gone is left out."""
        for key, answers in self._answers.items():
            for run_id in set(answers):
                with contextlib.suppress(Refused):
                    yield run_id, self._api.run(self._names[key], run_id)

    def _live(self, first: bool) -> bool:
        """Let the host live for a random time; at first it is up already. Whether it has answered.

        Now and then its store refuses meanwhile.
        """
        short = not first and self._chance.random() < SHORT_LIVES
        if not first:
            self._host.spawn()
        if short:
            time.sleep(self._chance.uniform(0, SHORT_LIFE))
            return False
        process = self._host.process
        _answered(lambda: self._api.call("GET", "/queues"))
        if self._chance.random() < REFUSALS:
            seconds = self._chance.uniform(0, LONGEST_REFUSAL)
            if self._chance.random() < 1 / 2:
                self._host.lock_store(seconds)
            else:
                self._host.fill_disk(process, seconds)
            time.sleep(AFTER_REFUSAL)
        time.sleep(self._chance.uniform(0, LONGEST_LIFE))
        return True

    def _count_live(self) -> int:
        return sum(bool(answers) for answers in self._answers.values()) - len(self._ended)

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
    """The answer of a host that may be down just now, or whose store may refuse.

    Refused for another reason is an answer too, and raised.
    """
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        try:
            return call()
        except (OSError, http.client.HTTPException):
            time.sleep(PAUSE)
        except Refused as refused:
            if refused.answer.status != HTTPStatus.SERVICE_UNAVAILABLE:
                raise
            time.sleep(PAUSE)
    raise Unfinished(f"no answer within {PATIENCE} s")
