"""Attempts in a child process: what its host sees of it, whatever becomes of it."""

import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from stepwell_engine.adapters.process.isolation import ProcessIsolation
from stepwell_engine.adapters.process.system import SystemClock
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import (
    Attempt,
    Deferred,
    Failed,
    Outcome,
    Succeeded,
    WorkerLost,
)
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.settings.embedded import Settings
from stepwell_engine.wiring.embedded import Home, embedded
from stepwell_engine.wiring.jobs import CHILD, Job

CODE = """
import ctypes, os, signal, subprocess, sys, threading, time
from pathlib import Path

def give(event): return event["payload"]
def large(event): return "x" * 200_000
def leave(event): os._exit(3)
def kill(event): os.kill(os.getpid(), signal.SIGKILL)
def fail(event): raise ValueError("no")
def sleep(event): time.sleep(600)
def hang(event): ctypes.PyDLL(None).sleep(600)
def score(event): return Path("/proc/self/oom_score_adj").read_text().strip()
def stdin(event): return sys.stdin.read()
def fork(event):
    child = os.fork()
    if child == 0:
        time.sleep(600)
    Path(event["payload"]).write_text(str(child))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    functions = tmp_path / "functions"
    functions.mkdir()
    (functions / "code.py").write_text(CODE)
    (tmp_path / "data").mkdir()
    home = embedded(settings(tmp_path))
    for name in (
        "give",
        "large",
        "leave",
        "kill",
        "fail",
        "sleep",
        "hang",
        "score",
        "stdin",
        "fork",
    ):
        home.engine.services.resources.put_function("p", name, {"python": f"code:{name}"})
    yield home
    home.close()


def settings(folder: Path) -> Settings:
    return Settings(data=folder / "data", functions=(folder / "functions",))


@pytest.fixture
def isolation(home: Home, tmp_path: Path) -> Iterator[ProcessIsolation]:
    job = Job(settings(tmp_path), tuple(sys.path))
    isolation = ProcessIsolation(CHILD, lambda *_: job, SystemClock())
    yield isolation
    isolation.close()


def attempt(function: str, payload: object = None, timeout: int = 30_000) -> Attempt:
    return Attempt("p", "w", "r", "a", Kind.FUNCTION, 1, "r:a", function, payload, None, timeout)


def test_the_outcome_is_that_of_the_step(isolation: ProcessIsolation) -> None:
    assert isolation.run(attempt("give", {"a": [1]})) == Succeeded(b'{"a":[1]}')
    assert isolation.run(attempt("large")) == Succeeded(b'"' + b"x" * 200_000 + b'"')
    assert isolation.run(attempt("fail")) == Failed("the function code:fail raised ValueError: no")


@pytest.mark.parametrize(
    ("function", "how"), [("leave", "exit status 3"), ("kill", "killed by SIGKILL")]
)
def test_an_attempt_that_ends_its_process_is_lost(
    isolation: ProcessIsolation, function: str, how: str
) -> None:
    assert isolation.run(attempt(function)) == WorkerLost(
        f"the process in which the step ran alone ended: {how}"
    )


@pytest.mark.parametrize("function", ["sleep", "hang"])
def test_an_attempt_that_overruns_times_out_and_is_over(
    isolation: ProcessIsolation, function: str
) -> None:
    outcome = isolation.run(attempt(function, timeout=1_500))
    assert isinstance(outcome, Failed)
    assert outcome.code == "timeout"
    assert not children()


def test_what_a_lost_attempt_forked_off_does_not_run_on(
    isolation: ProcessIsolation, tmp_path: Path
) -> None:
    assert isinstance(isolation.run(attempt("fork", str(tmp_path / "pid"))), WorkerLost)
    forked = int((tmp_path / "pid").read_text())
    wait_until_gone(forked)


def test_the_child_is_the_first_that_ends_for_memory_and_has_nothing_on_its_stdin(
    isolation: ProcessIsolation,
) -> None:
    if Path("/proc/self/oom_score_adj").exists():
        assert isolation.run(attempt("score")) == Succeeded(b'"1000"')
    assert isolation.run(attempt("stdin")) == Succeeded(b'""')


def test_a_child_that_does_not_begin_costs_nothing(home: Home, tmp_path: Path) -> None:
    def outcome(*program: str, data: str = "data") -> Outcome:
        where = settings(tmp_path).model_copy(update={"data": tmp_path / data})
        job = Job(where, tuple(sys.path))
        return ProcessIsolation(program, lambda *_: job, SystemClock()).run(attempt("give"))

    assert outcome(str(tmp_path / "missing")) == Deferred(
        "the process that runs this step alone cannot start: No such file or directory"
    )
    assert outcome("false") == Deferred(
        "the process that runs this step alone did not start: exit status 1"
    )
    unread = outcome(*CHILD, data="other")
    assert isinstance(unread, Deferred)
    assert unread.message.startswith("the process that runs this step alone cannot read the data")


def test_an_attempt_whose_time_is_over_before_its_child_has_begun_is_deferred(
    isolation: ProcessIsolation,
) -> None:
    late = replace(attempt("give"), deadline=SystemClock().now() - 5_000)
    assert isinstance(isolation.run(late), Deferred)
    assert not children()


def test_there_is_one_place(isolation: ProcessIsolation) -> None:
    first, second = about_run("a", "p"), about_run("b", "p")
    assert isolation.enter(first)
    assert not isolation.enter(second)
    assert isolation.leave() == second
    assert not isolation.enter(first)
    assert isolation.forget(second) == first


def test_what_is_closed_ends_its_child_and_starts_none(isolation: ProcessIsolation) -> None:
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(isolation.run(attempt("sleep"))))
    thread.start()
    while not children():
        time.sleep(0.01)
    isolation.close()
    thread.join()
    assert outcomes == [Deferred("the host stops")]
    assert isolation.run(attempt("give")) == Deferred("the host stops")
    assert not children()


def children() -> list[psutil.Process]:
    found = [one for one in psutil.Process().children() if one.status() != psutil.STATUS_ZOMBIE]
    return [one for one in found if CHILD[-1] in one.cmdline()]


def wait_until_gone(pid: int) -> None:
    ends = time.monotonic() + 20
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < ends
        time.sleep(0.01)
