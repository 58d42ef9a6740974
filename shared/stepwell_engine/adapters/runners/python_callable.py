"""Functions that are Python callables, called in this process.

A thread cannot be stopped, so a callable runs in one of its own: at the deadline the step ends as
timed out, and the callable goes on until it returns, its result ignored. If MAX_OVERDUE are in
that state, attempts are deferred until one returns.
"""

import importlib
import importlib.util
import inspect
import itertools
import os
import sys
import threading
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from stepwell_engine import limits
from stepwell_engine.adapters.runners.attempts import (
    NO_THREAD,
    deferred,
    event_of,
    is_shortage,
    output_of,
    timed_out,
)
from stepwell_engine.adapters.runners.deadline import Deadline
from stepwell_engine.core.run.attempt import Attempt, Deferred, Failed, Outcome

MAX_OVERDUE: Final = 100

_NUMBERS: Final = itertools.count()

Function = Callable[[dict[str, Any]], Any]


class CannotLoad(Exception):
    """There is no such callable; the message is one sentence."""


class Callables:
    """Calls `module:callable` with the event; what it returns must be a JSON value."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """`folders`: where modules are looked for, and nowhere else. A module is loaded once."""
        self._modules = Modules(folders)
        self._functions: dict[str, Function] = {}
        self._idle: list[_Runner] = []
        self._overdue: set[_Runner] = set()

    def call(self, name: str, attempt: Attempt, deadline: Deadline) -> Outcome:
        """Call once."""
        if len(self._overdue) >= MAX_OVERDUE:
            return Deferred(
                f"{MAX_OVERDUE} Python functions have overrun their timeout and still run: no "
                "further ones are called until one of them returns, or the host is started again"
            )
        try:
            runner = self._idle.pop()
        except IndexError:
            try:
                runner = _Runner(self._idle, self._overdue)
            except RuntimeError:
                return Deferred(NO_THREAD)
        if deadline.passed():
            self._idle.append(runner)
            return deferred(deadline)
        outcome = runner.run(lambda: self._outcome(name, attempt), deadline.seconds)
        return timed_out(f"the function {name}", deadline) if outcome is None else outcome

    def close(self) -> None:
        """End the idle threads."""
        while self._idle:
            self._idle.pop().end()

    def _outcome(self, name: str, attempt: Attempt) -> Outcome:
        try:
            function = self._functions.get(name) or self._load(name)
        except CannotLoad as error:
            return Failed(str(error))
        except BaseException as error:  # noqa: BLE001  be it SystemExit: the thread goes on
            if isinstance(error, OSError) and is_shortage(error):
                return Deferred(f"the function {name} cannot be loaded now: {_described(error)}")
            return Failed(f"loading the function {name} raised {_described(error)}")
        try:
            value = function(event_of(attempt))
        except BaseException as error:  # noqa: BLE001
            return Failed(f"the function {name} raised {_described(error)}")
        what = f"what {name} returned"
        try:
            return output_of(value, what)
        except BaseException as error:  # noqa: BLE001  the value has methods of its own
            return Failed(f"{what} is no JSON: reading it raised {_described(error)}")

    def _load(self, name: str) -> Function:
        function = self._functions[name] = self._modules.find(name)
        return function


class Modules:
    """Modules of the user's, apart from those of the host.

    Each folder becomes a package with a name of its own, so that a user's `json.py` is not taken
    for the standard one, nor the other way round. Within a folder, modules import each other
    relatively (`from . import prices`).
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._packages: list[str] = []
        for folder in folders:
            package = types.ModuleType(f"_stepwell_functions_{next(_NUMBERS)}")
            package.__path__ = [str(folder.absolute())]
            sys.modules[package.__name__] = package
            self._packages.append(package.__name__)

    def find(self, name: str) -> Function:
        """The callable `module:callable`. CannotLoad; what the module raises."""
        module_name, _, path = name.partition(":")
        found: Any = self._module(module_name)
        for attribute in path.split("."):
            found = getattr(found, attribute, None)
        if not callable(found):
            raise CannotLoad(f"the module {module_name} has no callable {path}")
        if inspect.iscoroutinefunction(found):
            raise CannotLoad(f"{name} is an async function: only plain ones can be called")
        function: Function = found
        return function

    def _module(self, name: str) -> types.ModuleType:
        importlib.invalidate_caches()  # the file may be newer than what is known of its folder
        for package in self._packages:
            if self._is_in(package, name):
                return importlib.import_module(f"{package}.{name}")
        raise CannotLoad(
            f"there is no module {name} in the folders of functions that the host was started "
            "with (--functions)"
        )

    def _is_in(self, package: str, name: str) -> bool:
        parent = package
        for part in name.split("."):
            if not hasattr(sys.modules.get(parent) or importlib.import_module(parent), "__path__"):
                return False
            parent = f"{parent}.{part}"
            if importlib.util.find_spec(parent) is None:
                return False
        return True


class _Runner:
    """A thread that runs one job after the other."""

    def __init__(self, idle: "list[_Runner]", overdue: "set[_Runner]") -> None:
        self._idle = idle
        self._overdue = overdue
        self._job: Callable[[], Outcome] | None = None
        self._outcome: Outcome | None = None
        # Locks as signals: half the cost of a condition or an event.
        self._start, self._done = threading.Lock(), threading.Lock()
        self._state = threading.Lock()
        self._start.acquire()
        self._done.acquire()
        threading.Thread(target=self._work, name="python function", daemon=True).start()

    def run(self, job: Callable[[], Outcome], seconds: float) -> Outcome | None:
        """The outcome of the job; None if it takes longer, it then goes on by itself."""
        self._job = job
        self._start.release()
        if not self._done.acquire(timeout=seconds):
            with self._state:
                if self._outcome is None:
                    self._overdue.add(self)
                    return None
            self._done.acquire()
        outcome, self._outcome, self._job = self._outcome, None, None
        self._idle.append(self)
        return outcome

    def end(self) -> None:
        """End the idle thread."""
        self._job = None
        self._start.release()

    def _work(self) -> None:
        process = os.getpid()
        while True:
            self._start.acquire()
            if self._job is None:
                return
            outcome = self._job()
            if os.getpid() != process:
                os._exit(0)  # a child that the function forked off, and that came back with it
            with self._state:
                if self in self._overdue:
                    self._overdue.discard(self)
                    return
                self._outcome = outcome
            self._done.release()


def _described(error: BaseException) -> str:
    name = type(error).__name__
    try:
        text = str(error)
        return f"{name}: {text}"[: limits.MAX_ERROR_TEXT] if text else name
    except BaseException:  # noqa: BLE001  it has a text of its own making
        return f"{name}, whose text cannot be shown"
