"""A host that is short of descriptors or threads: the attempt did not happen, and costs none."""

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from stepwell_engine.adapters.http.client import HttpClient
from stepwell_engine.adapters.http.resolver import SystemResolver
from stepwell_engine.adapters.http.transport import GuardedAdapter
from stepwell_engine.adapters.memory.resources import MemoryResources
from stepwell_engine.adapters.runners.command import Commands
from stepwell_engine.adapters.runners.deadline import Deadline
from stepwell_engine.adapters.runners.function import FunctionRunner
from stepwell_engine.adapters.runners.python_callable import Callables
from stepwell_engine.adapters.runners.sql import SqlRunner
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import Attempt, Deferred, Outcome, Succeeded
from stepwell_engine.errors import Unavailable
from stepwell_engine.ports import Resource
from stepwell_engine.wiring.lazy import LazyStepRunner
from tests.adapters.attempts import StillClock, attempt
from tests.adapters.certificates import server_context
from tests.adapters.conftest import LOOPBACK
from tests.adapters.receivers import Receiver, serving
from tests.adapters.statements import rows, run


@contextmanager
def no_descriptors() -> Iterator[None]:
    """No file or socket can be opened in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def no_thread(_: threading.Thread) -> NoReturn:
    raise RuntimeError("can't start new thread")


def words(outcome: object) -> str:
    assert isinstance(outcome, Deferred), outcome
    return outcome.message


def test_a_request_is_not_sent(client: HttpClient, receiver: Receiver) -> None:
    with no_descriptors():
        outcome = client.post(receiver.url, {}, b"", Deadline(30_000))
    assert words(outcome) == f"POST {receiver.url} was not sent: Too many open files"
    assert receiver.requests == []


def test_a_request_over_tls_is_not_sent(tmp_path: Path) -> None:
    with serving(Receiver(), server_context(tmp_path, "127.0.0.1")) as receiver:
        adapter = GuardedAdapter(LOOPBACK, SystemResolver(), str(tmp_path / "ca.pem"))
        client = HttpClient(adapter, StillClock())
        url = f"https://127.0.0.1:{receiver.port}/"
        with no_descriptors():
            assert "Too many open files" in words(client.post(url, {}, b"", Deadline(30_000)))
        adapter.close()


@pytest.mark.parametrize(
    "raised", [OSError(24, "Too many open files"), OSError(11, "no thread")], ids=["file", "thread"]
)
def test_a_name_is_not_resolved(raised: OSError) -> None:
    def resolve(host: str, timeout: float) -> list[str]:
        raise raised

    client = HttpClient(GuardedAdapter((), resolve), StillClock())
    outcome = client.post("https://hooks.example.com/", {}, b"", Deadline(30_000))
    assert words(outcome).startswith("POST https://hooks.example.com/ was not sent: ")


def test_a_lookup_that_gets_no_thread_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = SystemResolver()
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    for _ in range(2):
        with pytest.raises(OSError, match="can start no further thread"):
            resolver("hooks.example.com", 600)


def test_a_command_is_not_started() -> None:
    with no_descriptors():
        outcome = Commands({}).call(["true"], attempt(Kind.FUNCTION, "f"), Deadline(20_000))
    assert words(outcome) == 'the command "true" cannot be started: Too many open files'


def test_a_python_function_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("def f(event): return 1\n")
    callables = Callables([tmp_path])
    with no_descriptors():
        outcome = callables.call("shop:f", attempt(Kind.FUNCTION, "f"), Deadline(20_000))
    assert "the function shop:f cannot be loaded now: " in words(outcome)
    assert callables.call("shop:f", attempt(Kind.FUNCTION, "f"), Deadline(20_000)) == Succeeded(
        b"1"
    )
    callables.close()


def test_a_python_function_gets_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    outcome = Callables([tmp_path]).call("shop:f", attempt(Kind.FUNCTION, "f"), Deadline(20_000))
    assert words(outcome) == "the host can start no further thread"


def test_a_statement_is_not_sent(runner: SqlRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    with no_descriptors():
        outcome = run(runner, "create table a (n int)")
    assert "Too many open files" in words(outcome)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_thread)
        assert "no further thread" in words(run(runner, "create table a (n int)"))
    assert rows(runner, "select count(*) as n from pg_tables where tablename = 'a'") == [{"n": 0}]


def test_a_performer_is_not_loaded() -> None:
    fails = [OSError(24, "Too many open files"), OSError(2, "No such file or directory")]

    class Made:
        def run(self, attempt: Attempt) -> Outcome:
            return Succeeded()

    def make() -> Made:
        if fails:
            raise fails.pop(0)
        return Made()

    runner = LazyStepRunner(make)
    assert "Too many open files" in words(runner.run(attempt(Kind.SQL, "select 1")))
    with pytest.raises(FileNotFoundError):
        runner.run(attempt(Kind.SQL, "select 1"))
    assert runner.run(attempt(Kind.SQL, "select 1")) == Succeeded()


def test_a_catalog_that_does_not_answer_costs_no_attempt() -> None:
    class Silent(MemoryResources):
        def get(
            self, project: str, kind: str, name: str, within: int | None = None
        ) -> Resource | None:
            raise Unavailable("no answer")

    outcome = FunctionRunner(Silent(), {}, StillClock()).run(attempt(Kind.FUNCTION, "f"))
    assert words(outcome) == 'the function "f" cannot be looked up now: no answer'
