"""What a step costs on AWS: runs of the real engine over DynamoDB on moto, by the meter.

Counted are the API request that starts a run, its Lambda, and every call to DynamoDB. Assumed are
one message per batch from SQS (send, receive, delete), and the Lambda time below. Not counted is
what a step itself does, and what does not depend on runs: the tick, idle polling, storage.
"""

import json
import random
import string
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from stepwell_engine.adapters.dynamodb.client import DynamoDB, connect
from stepwell_engine.adapters.dynamodb.grants import DynamoGrants
from stepwell_engine.adapters.dynamodb.projects import DynamoProjects
from stepwell_engine.adapters.dynamodb.resources import DynamoResources
from stepwell_engine.adapters.dynamodb.runs import DynamoRuns
from stepwell_engine.adapters.dynamodb.versions import DynamoVersions
from stepwell_engine.adapters.memory.hints import MemoryDispatcher
from stepwell_engine.adapters.memory.queues import MemoryQueues
from stepwell_engine.adapters.process.system import RandomIds
from stepwell_engine.adapters.runners.function import FunctionRunner
from stepwell_engine.api.auth import admit
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import Attempt, Outcome, Succeeded
from stepwell_engine.core.run.status import Status
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.limits import MAX_CHILDREN
from stepwell_engine.ports import Clock, Runs, StepRunner
from stepwell_engine.service.projects.identity import Permission, Role
from stepwell_engine.service.worker.advance import Advance
from stepwell_engine.wiring.engine import assemble
from stepwell_engine.wiring.stores import Capabilities, Stores
from tools.bill import prices
from tools.bill.meter import Bill, Meter
from tools.moto_home import CONTROL, REGION, RUNS, DynamoHome, client

SEED: Final = 3
RUNS_OF_EACH: Final = 4  # the figures are means
OUTPUT: Final = 100  # bytes of JSON
MEMORY_MB: Final = 512
API_CALL_MS: Final = 10
STEP_MS: Final = 5  # of Lambda time
STEP_TIME_MS: Final = 7  # until the outcome is there
SQS_PER_HINT: Final = 3  # send, receive, delete
BUDGET: Final = 60_000  # ms that one invocation goes on with a run
CHILDREN: Final = (8, MAX_CHILDREN)  # of two fan-outs that are compared
SIGNAL: Final = json.dumps("x" * 1022).encode()  # a payload of 1 KiB
# What is to be reached, in dollars per million steps and in write units.
TARGETS: Final = {
    "usd_of_5_steps": 2.0,
    "usd_of_50_steps": 1.0,
    "marginal_write_units": 1.3,
    "fanout_child": 1.3,
    "signal_wait": 10.0,
}
ORDER_PIPELINE: Final = Path(__file__).parents[2] / "examples/order_pipeline/workflow.json"
# JSON text without escapes; a hundred of these can hardly be compressed.
CHARACTERS: Final = "".join(sorted({*string.printable[:95]} - {'"', "\\"}))

PROJECT, WORKFLOW, ORGANIZATION = "shop", "order-pipeline", "acme"


class SkippingClock:
    """A clock that moves when a caller sleeps, and with every step."""

    def __init__(self) -> None:
        self.at = 1_800_000_000_000

    def now(self) -> int:
        """Milliseconds since the epoch."""
        return self.at

    def sleep(self, ms: int) -> None:
        """Skip the time."""
        self.at += ms


class OpenSecrets:
    """Seals nothing: what a secret costs is not the question here."""

    def seal(self, plain: str, project: str) -> str:
        """The text itself, with as many bytes more as sealing adds."""
        return plain + "." * 60

    def open(self, sealed: str, project: str, within: int | None = None) -> str:
        """The opposite."""
        return sealed[:-60]


class LabelledRuns:
    """Puts what a call costs under the call's name."""

    def __init__(self, runs: Runs, meter: Meter) -> None:
        self._runs = runs
        self._meter = meter

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._runs, name)

        def labelled(*arguments: Any) -> Any:
            with self._meter.label(name):
                return call(*arguments)

        return labelled


@dataclass
class Work:
    """The steps' own work: 7 ms and 100 bytes of output each."""

    clock: Clock
    meter: Meter
    dice: random.Random = field(default_factory=partial(random.Random, SEED))
    steps: int = 0

    def run(self, attempt: Attempt) -> Outcome:
        """Succeed."""
        return self.call(None, attempt)

    def call(self, _target: object, attempt: Attempt, _deadline: object = None) -> Outcome:
        """Succeed; a message costs a request."""
        self.steps += 1
        self.clock.sleep(STEP_TIME_MS)
        if attempt.kind is Kind.ENQUEUE:
            self.meter.sqs(1)
        return Succeeded(jsonvalue.encode("".join(self.dice.choices(CHARACTERS, k=OUTPUT - 2))))


@dataclass
class OneByOne:
    """A task group in which one task ends at each wait: no two outcomes share a commit."""

    tasks: deque[Callable[[], None]] = field(default_factory=deque)

    def open(self) -> "OneByOne":
        """A group without a task."""
        return OneByOne()

    def start(self, task: Callable[[], None]) -> None:
        """Keep the task for a wait."""
        self.tasks.append(task)

    def wait(self, _ms: int | None) -> None:
        """Run the oldest task."""
        self.tasks.popleft()()

    def close(self) -> None:
        """Run the tasks that are left."""
        while self.tasks:
            self.wait(None)


class MeteredAws:
    """The engine over DynamoDB on moto, with a workflow published and a token minted."""

    def __init__(self, body: Mapping[str, Any], meter: Meter) -> None:
        self.clock = SkippingClock()
        self.meter = meter
        self.hints = MemoryDispatcher(self.clock)
        self.work = Work(self.clock, meter)
        database = DynamoDB(client(), self.clock)
        resources = DynamoResources(database, CONTROL)
        runs = cast(Runs, LabelledRuns(DynamoRuns(database, RUNS), meter))
        functions = FunctionRunner(resources, {"url": self.work.call}, self.clock)
        runners: dict[str, StepRunner] = dict.fromkeys(Kind, self.work)
        runners[Kind.FUNCTION] = functions
        self._runs = runs
        self._runners = runners
        self._assemble = partial(
            assemble,
            Stores(
                runs=runs,
                projects=DynamoProjects(database, CONTROL),
                grants=DynamoGrants(database, CONTROL),
                versions=DynamoVersions(database, CONTROL),
                resources=resources,
                queues=MemoryQueues(),
                secrets=OpenSecrets(),
            ),
            runners,
            self.hints,
            self.clock,
            RandomIds(self.clock),
            Capabilities(frozenset({"url"}), frozenset(), 150_000),
        )
        self.engine = self._assemble()
        services = self.engine.services
        services.identity.create_project(ORGANIZATION, PROJECT)
        self.token = services.identity.mint_session(ORGANIZATION, Role.DEVELOPER)
        services.resources.put_function(PROJECT, "work", {"url": "https://example.com/work"})
        services.workflows.publish(PROJECT, WORKFLOW, body)

    def run(self, signals: Sequence[bytes] = ()) -> None:
        """One run over the API, to its end; each signal is sent when it goes no further.

        Workers begin cold: nobody has read the workflow.
        """
        advance, run_id = self._worker(), self.start()
        self._advance(advance, run_id)
        for payload in signals:
            self.signal(run_id, "go", payload)
            self._advance(advance, run_id)

    def start(self) -> str:
        """Start a run over the API; its id."""
        with self._request():
            return self.engine.services.starts.start(PROJECT, WORKFLOW, b"{}").head.run_id

    def signal(self, run_id: str, name: str, payload: bytes, key: str | None = None) -> None:
        """Send a signal over the API."""
        with self._request():
            self.engine.services.controls.signal(PROJECT, WORKFLOW, run_id, name, payload, key)

    def advance(self, run_id: str) -> None:
        """Have a new worker follow the hints that there are."""
        self._advance(self._worker(), run_id)

    @contextmanager
    def _request(self) -> Iterator[None]:
        with self.meter.label("api"):
            self.meter.invoked(API_CALL_MS, MEMORY_MB)
            admit(self.engine.services.identity, f"Bearer {self.token}", Permission.RUN, PROJECT)
            yield

    def _worker(self) -> Advance:
        return Advance(
            self._runs,
            self._assemble().services.workflows,
            self._runners,
            OneByOne(),
            self.hints,
            self.clock,
            RandomIds(self.clock),
        )

    def _advance(self, advance: Advance, run_id: str) -> None:
        with self.meter.label("worker"):
            while self._next_hint():
                before = self.work.steps
                self.meter.sqs(SQS_PER_HINT)
                advance.run(run_id, PROJECT, BUDGET)
                self.meter.invoked(max(1, self.work.steps - before) * STEP_MS, MEMORY_MB)

    def succeeded(self) -> int:
        """How many runs there are; RuntimeError if one did not succeed."""
        runs, _ = self._assemble().services.queries.list(PROJECT, WORKFLOW, None, 100, None)
        failed = [run.status for run in runs if run.status is not Status.SUCCEEDED]
        if failed:
            raise RuntimeError(f"a run to be measured ended {failed[0]}")
        return len(runs)

    def _next_hint(self) -> bool:
        """Take the next hint at its time; False if there is none."""
        at = self.hints.next_at()
        if at is None:
            return False
        self.clock.at = max(self.clock.at, at)
        return self.hints.pop_due(self.clock.at) is not None


def function_steps(count: int) -> dict[str, Any]:
    """A workflow of steps that call a function."""
    steps = [{"key": f"step-{n}", "kind": "function", "target": "work"} for n in range(count)]
    return {"steps": steps}


def fan_of(count: int) -> dict[str, Any]:
    """A workflow of a fan-out over functions, and its join."""
    children = function_steps(count)["steps"]
    return {
        "steps": [
            {"key": "all", "kind": "fanout", "children": children},
            {"key": "joined", "kind": "join"},
        ]
    }


def bill(runs: int = RUNS_OF_EACH) -> dict[str, Any]:
    """The bill for runs of 5 and 50 function steps, and of the order pipeline.

    In write units: what one step more costs, one child more of a fan-out, a wait for a signal.
    """
    five, fifty = (measure(function_steps(count), runs) for count in (5, 50))
    few, many = (measure(fan_of(count), runs) for count in CHILDREN)
    pipeline = json.loads(ORDER_PIPELINE.read_text("utf-8"))
    without, waiting = measure(function_steps(2), runs), measure(_with_a_wait(), runs, (SIGNAL,))
    wait = {
        name: units - without["writes"].get(name, 0) for name, units in waiting["writes"].items()
    }
    return {
        "5": five,
        "50": fifty,
        "usd_of_5_steps": five["usd_per_million_steps"],
        "usd_of_50_steps": fifty["usd_per_million_steps"],
        "marginal_write_units": (fifty["write_units"] - five["write_units"]) / 45,
        "fanout_child": (many["write_units"] - few["write_units"]) / (CHILDREN[1] - CHILDREN[0]),
        "fanout_writes": many["writes"],
        "signal_wait": waiting["write_units"] - without["write_units"],
        "signal_wait_writes": {name: units for name, units in wait.items() if units},
        "order_pipeline": measure(pipeline, runs),
        "runs_of_each": runs,
        "prices_as_of": prices.AS_OF,
        "targets": TARGETS,
    }


def _with_a_wait() -> dict[str, Any]:
    first, last = function_steps(2)["steps"]
    return {"steps": [first, {"key": "wait", "kind": "wait_for_signal", "signal": "go"}, last]}


def measure(body: Mapping[str, Any], runs: int, signals: Sequence[bytes] = ()) -> dict[str, Any]:
    """Figures of one run of a workflow, and the price of a million of its steps."""
    home = DynamoHome()
    try:
        meter = Meter(connect(REGION))
        system = MeteredAws(body, meter)
        meter.watch(client())
        try:
            for _ in range(runs):
                system.run(signals)
        finally:
            meter.unwatch(client())
        if system.succeeded() != runs:
            raise RuntimeError("not every run was found")
        return figures(meter.bill(), runs, len(body["steps"]))
    finally:
        home.close()


def figures(billed: Bill, runs: int, steps: int) -> dict[str, Any]:
    """One run's share of a bill; `usd` is what its parts cost, for a million steps."""
    parts = {
        "writes": billed.write_units * prices.WRITE_UNIT,
        "reads": billed.read_units * prices.READ_UNIT,
        "sqs": billed.sqs_requests * prices.SQS_REQUEST,
        "lambda": billed.lambda_invocations * prices.LAMBDA_INVOCATION
        + billed.lambda_gb_seconds * prices.LAMBDA_GB_SECOND,
        "api": runs * prices.API_REQUEST,
    }
    usd = {part: price / runs / steps * 1e6 for part, price in parts.items()}
    return {
        "usd_per_million_steps": sum(usd.values()),
        "write_units": billed.write_units / runs,
        "read_units": billed.read_units / runs,
        "sqs_requests": billed.sqs_requests / runs,
        "lambda_invocations": billed.lambda_invocations / runs,
        "usd": usd,
        "writes": _shares(billed.writes, runs),
        "reads": _shares(billed.reads, runs),
    }


def _shares(units: Mapping[tuple[str, str], float], runs: int) -> dict[str, float]:
    return {" ".join(billed): count / runs for billed, count in sorted(units.items())}
