"""What an attempt looks up takes its time: what is left goes to the call, however slow it is.

Every look-up takes 0.3 of the time, and every call 0.9: the call would be done in time, if the
look-up did not count. Where no time is left, nothing goes out, and the attempt is deferred.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from botocore.exceptions import ReadTimeoutError  # type: ignore[import-untyped]

from stepwell_engine.adapters.aws_clients import TIMEOUT, Clients
from stepwell_engine.adapters.http.client import HttpClient
from stepwell_engine.adapters.http.transport import GuardedAdapter
from stepwell_engine.adapters.memory.queues import MemoryQueues
from stepwell_engine.adapters.memory.resources import MemoryResources
from stepwell_engine.adapters.runners.command import Commands
from stepwell_engine.adapters.runners.enqueue import EnqueueRunner
from stepwell_engine.adapters.runners.function import FunctionRunner
from stepwell_engine.adapters.runners.lambda_function import LambdaFunctions
from stepwell_engine.adapters.runners.python_callable import Callables
from stepwell_engine.adapters.runners.sql import SqlRunner
from stepwell_engine.adapters.runners.sql_data_api import DataApiRunner
from stepwell_engine.adapters.runners.url_function import UrlFunctions
from stepwell_engine.adapters.runners.webhook import WebhookRunner
from stepwell_engine.adapters.secrets.sealed import SealedSecrets
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import Attempt, Deferred, Outcome
from stepwell_engine.errors import Unavailable
from stepwell_engine.ports import Resource, StepRunner
from tests.adapters.attempts import NOW, StillClock, attempt, failure, resource
from tests.adapters.conftest import LOOPBACK
from tests.adapters.receivers import Receiver, serving

TIME = 1_000  # of the attempt, in ms
LOOKUP, CALL = 0.3, 0.9  # s that they take
CLUSTER = {"cluster": "arn:aws:rds:eu-west-1:1:cluster:c", "secret": "arn:s"}


@dataclass
class Pace:
    """How slow the world is, how much time each look-up was given, and what went out."""

    lookup: float = LOOKUP
    given: list[int | None] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)

    def look_up(self, within: int | None) -> None:
        self.given.append(within)
        time.sleep(self.lookup)

    def call(self, what: str, timeout: float = 60.0) -> None:
        """ReadTimeoutError if it takes longer than it may."""
        self.sent.append(what)
        time.sleep(min(CALL, timeout))
        if timeout < CALL:
            raise ReadTimeoutError(endpoint_url="https://aws")


class SlowResources(MemoryResources):
    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    def get(self, project: str, kind: str, name: str, within: int | None = None) -> Resource | None:
        self._pace.look_up(within)
        return super().get(project, kind, name)


class SlowSecrets(SealedSecrets):
    def __init__(self, pace: Pace) -> None:
        super().__init__(bytes(32))
        self._pace = pace

    def open(self, sealed: str, project: str, within: int | None = None) -> str:
        self._pace.look_up(within)
        return super().open(sealed, project)


class SlowQueues(MemoryQueues):
    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    def send(
        self, project: str, queue: str, body: bytes, now: int, within: int | None = None
    ) -> int:
        assert within is not None
        try:
            self._pace.call("message", within / 1_000)
        except ReadTimeoutError as error:
            raise Unavailable("SQS: no answer") from error
        return super().send(project, queue, body, now)


class SlowService:
    """A client of Lambda or of the Data API."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace

    def invoke(self, **arguments: Any) -> Any:
        self._pace.call("invocation", arguments[TIMEOUT])

    def begin_transaction(self, **arguments: Any) -> Any:
        return {"transactionId": "t"}

    def execute_statement(self, **arguments: Any) -> Any:
        self._pace.call("statement", arguments[TIMEOUT])

    def rollback_transaction(self, **arguments: Any) -> None:
        self._pace.sent.append("rollback")


class SlowClients(Clients):
    def __init__(self, pace: Pace) -> None:
        self._service = SlowService(pace)

    def get(self, service: str, *, attempts: int, region: str | None = None) -> Any:
        return self._service


@dataclass
class Bench:
    """What the runners are made of."""

    pace: Pace
    opened: ExitStack
    folder: Path
    database: str

    def http(self, resolver: Callable[[str, float], Sequence[str]]) -> HttpClient:
        adapter = GuardedAdapter(LOOPBACK, resolver)
        self.opened.callback(adapter.close)
        return HttpClient(adapter, StillClock())

    def receiver(self) -> Receiver:
        return self.opened.enter_context(serving(SlowReceiver(self.pace)))

    def function(self, kind: str, target: Any, call: Any) -> FunctionRunner:
        resources = SlowResources(self.pace)
        resources.put(resource("function", "f", {kind: target}))
        return FunctionRunner(resources, {kind: call}, StillClock())


class SlowReceiver(Receiver):
    """Answers late. `body` is read when the answer is due."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        super().__init__()

    @property
    def body(self) -> bytes:
        self._pace.call("request")
        return b""

    @body.setter
    def body(self, _: bytes) -> None:
        """Always the same."""


Case = Callable[[Bench], tuple[StepRunner, Attempt]]


def instant(host: str, timeout: float) -> list[str]:
    return ["127.0.0.1"]


def webhook_secret(bench: Bench) -> tuple[StepRunner, Attempt]:
    secrets = SlowSecrets(bench.pace)
    runner = WebhookRunner(bench.http(instant), secrets, StillClock())
    return runner, attempt(Kind.WEBHOOK, bench.receiver().url, secret=secrets.seal("s", "shop"))


def webhook_name(bench: Bench) -> tuple[StepRunner, Attempt]:
    def resolve(host: str, timeout: float) -> list[str]:
        bench.pace.look_up(round(timeout * 1_000))
        return ["127.0.0.1"]

    runner = WebhookRunner(bench.http(resolve), SealedSecrets(bytes(32)), StillClock())
    url = f"http://hooks.example.test:{bench.receiver().port}/"
    return runner, attempt(Kind.WEBHOOK, url)


def url_function(bench: Bench) -> tuple[StepRunner, Attempt]:
    call = UrlFunctions(bench.http(instant)).call
    return bench.function("url", bench.receiver().url, call), attempt(Kind.FUNCTION, "f")


def command(bench: Bench) -> tuple[StepRunner, Attempt]:
    commands = Commands({})
    bench.opened.callback(commands.close)
    ran = bench.folder / "ran"
    script = f"import time; open({str(ran)!r}, 'w').close(); time.sleep({CALL}); print(1)"
    runner = bench.function("command", [sys.executable, "-c", script], commands.call)
    return runner, attempt(Kind.FUNCTION, "f")


def python(bench: Bench) -> tuple[StepRunner, Attempt]:
    (bench.folder / "slow.py").write_text(
        f"import pathlib, time\n"
        f"def f(event):\n"
        f"    pathlib.Path({str(bench.folder / 'ran')!r}).touch()\n"
        f"    time.sleep({CALL})\n"
    )
    callables = Callables([bench.folder])
    bench.opened.callback(callables.close)
    return bench.function("python", "slow:f", callables.call), attempt(Kind.FUNCTION, "f")


def lambda_function(bench: Bench) -> tuple[StepRunner, Attempt]:
    call = LambdaFunctions(SlowClients(bench.pace)).call
    runner = bench.function("lambda", "arn:aws:lambda:eu-west-1:1:function:f", call)
    return runner, attempt(Kind.FUNCTION, "f")


def enqueue(bench: Bench) -> tuple[StepRunner, Attempt]:
    resources, queues = SlowResources(bench.pace), SlowQueues(bench.pace)
    resources.put(resource("queue", "emails", {}))
    queues.create("shop", "emails", 30_000, 5)
    return EnqueueRunner(resources, queues, StillClock()), attempt(Kind.ENQUEUE, "emails")


def data_api(bench: Bench) -> tuple[StepRunner, Attempt]:
    resources = SlowResources(bench.pace)
    resources.put(resource("database", "database", CLUSTER))
    runner = DataApiRunner(resources, SlowClients(bench.pace), StillClock())
    return runner, attempt(Kind.SQL, "select 1")


# The server gives up a tenth of the time earlier.
STATEMENT = "create table ran as select 1 as n from pg_sleep(0.8)"


def sql(bench: Bench) -> tuple[StepRunner, Attempt]:
    resources = SlowResources(bench.pace)
    resources.put(resource("database", "database", {"embedded": True}))
    runner = SqlRunner(resources, SealedSecrets(bytes(32)), lambda _: bench.database, StillClock())
    bench.opened.callback(runner.close)
    return runner, attempt(Kind.SQL, STATEMENT)


def sql_secret(bench: Bench) -> tuple[StepRunner, Attempt]:
    secrets, resources = SlowSecrets(bench.pace), MemoryResources()
    sealed = secrets.seal(bench.database, "shop")
    resources.put(resource("database", "database", {"embedded": False}, sealed))
    runner = SqlRunner(resources, secrets, lambda _: "", StillClock())
    bench.opened.callback(runner.close)
    return runner, attempt(Kind.SQL, STATEMENT)


def sql_server(bench: Bench) -> tuple[StepRunner, Attempt]:
    def starting(project: str) -> str:
        bench.pace.look_up(TIME)
        return bench.database

    resources = MemoryResources()
    resources.put(resource("database", "database", {"embedded": True}))
    runner = SqlRunner(resources, SealedSecrets(bytes(32)), starting, StillClock())
    bench.opened.callback(runner.close)
    return runner, attempt(Kind.SQL, STATEMENT)


CASES: dict[str, tuple[Case, str]] = {
    "webhook, secret": (webhook_secret, "opening the secret of the step"),
    "webhook, name": (webhook_name, "resolving hooks.example.test"),
    "url": (url_function, 'looking up the function "f"'),
    "command": (command, 'looking up the function "f"'),
    "python": (python, 'looking up the function "f"'),
    "lambda": (lambda_function, 'looking up the function "f"'),
    "enqueue": (enqueue, 'looking up the queue "emails"'),
    "data api": (data_api, 'looking up the database "database"'),
    "sql": (sql, 'looking up the database "database"'),
    "sql, secret": (sql_secret, "opening the DSN of the project's database"),
    "sql, server": (sql_server, "starting the embedded PostgreSQL"),
}
# A name that does not resolve in time is the receiver's, and costs an attempt.
DEFERS = [name for name in CASES if name != "webhook, name"]


@pytest.fixture
def bench(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    sql = "sql" in request.node.callspec.params["name"]
    database = request.getfixturevalue("dsn") if sql else ""
    with ExitStack() as opened:
        yield Bench(Pace(), opened, tmp_path, database)


def committed(bench: Bench) -> bool:
    """Whether the statement had its effect."""
    if bench.database == "":
        return False
    with psycopg.connect(bench.database) as connection:
        return connection.execute("select to_regclass('ran')").fetchone() != (None,)


def went_out(bench: Bench) -> bool:
    return bool(bench.pace.sent) or (bench.folder / "ran").exists() or committed(bench)


def run(runner: StepRunner, one: Attempt, timeout: int = TIME, **fields: Any) -> Outcome:
    return runner.run(replace(one, timeout=timeout, **fields))


@pytest.mark.parametrize("name", CASES)
def test_what_a_look_up_took_is_not_there_for_the_call(name: str, bench: Bench) -> None:
    case, lookup = CASES[name]
    runner, one = case(bench)
    failed = failure(run(runner, one))
    assert failed.code == "timeout"
    assert failed.retryable
    assert f"timed out after 1 s: {lookup} took 0." in failed.message
    (given,) = bench.pace.given
    assert given is not None
    assert given <= TIME
    assert not committed(bench)


@pytest.mark.parametrize("name", DEFERS)
def test_if_a_look_up_takes_all_the_time_nothing_goes_out(name: str, bench: Bench) -> None:
    case, lookup = CASES[name]
    runner, one = case(bench)
    bench.pace.lookup = 1.1 * TIME / 1_000
    outcome = run(runner, one)
    assert isinstance(outcome, Deferred), outcome
    assert lookup in outcome.message
    assert not went_out(bench)


@pytest.mark.parametrize("name", DEFERS)
def test_an_attempt_that_begins_too_late_does_not_begin(name: str, bench: Bench) -> None:
    case, _ = CASES[name]
    runner, one = case(bench)
    outcome = run(runner, one, deadline=NOW)
    assert outcome == Deferred("the attempt could not begin within its 1 s")
    assert bench.pace.given == []
    assert not went_out(bench)


@pytest.mark.parametrize("name", CASES)
def test_the_deadline_of_the_worker_bounds_the_attempt(name: str, bench: Bench) -> None:
    case, _ = CASES[name]
    runner, one = case(bench)
    bench.pace.lookup = 0.0
    failed = failure(run(runner, one, timeout=30_000, deadline=NOW + 700))
    assert (failed.code, failed.retryable) == ("timeout", True)
    assert not committed(bench)
