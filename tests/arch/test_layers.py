"""Imports point one way, the rules are pure, and one module reads the environment."""

import ast
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

import pytest

from tests.arch.layers import (
    ENGINE,
    FOLDERS,
    LIBRARIES,
    MAY_IMPORT,
    PURE_MODULES,
    UNSEEDED_MODULES,
    folder_of_import,
    folder_of_path,
    layer_of_import,
    layer_of_path,
)
from tests.arch.sources import Import, Source, imports, is_standard, python_sources

IMPURE_NAMES = frozenset({"open", "print", "input", "eval", "exec", "globals", "compile"})
CLOCK_READS = frozenset({"now", "today", "utcnow"})
ENVIRONMENT = frozenset({"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"})

SETTINGS = PurePosixPath("shared/stepwell_engine/settings")
# Who else may touch the environment, and why.
ENVIRONMENT_READERS: dict[PurePosixPath, str] = {
    PurePosixPath("infra/app.py"): "the CDK command line says there where to write",
    PurePosixPath("tools/bench/start.py"): "a fresh interpreter gets this one's PATH and no more",
}


def against_the_arrows(source: Source) -> Iterator[str]:
    """Imports that the table of layers does not allow."""
    layer = layer_of_path(source.path)
    if source.path == PurePosixPath(f"shared/{ENGINE}/__init__.py"):
        layer = "limits"  # nothing below it: everything imports the package itself
    if layer not in MAY_IMPORT:
        yield f"{source.path}: {layer} is not in the table of layers"
        return
    for found in imports(source):
        if problem := _refused(layer, found):
            yield f"{source.path}:{found.line}: {problem}"


def against_the_folders(source: Source) -> Iterator[str]:
    """Imports from a folder of a layer into one that lies above it."""
    layer, own = layer_of_path(source.path), folder_of_path(source.path)
    order = FOLDERS.get(layer)
    if order is None or own is None:
        return
    if own not in order:
        yield f"{source.path}: the folder {own} is not in the order of {layer}"
        return
    for found in imports(source):
        target = folder_of_import(found.name)
        if layer_of_import(found.name) != layer or target not in order:
            continue
        if order.index(target) > order.index(own):
            yield f"{source.path}:{found.line}: {layer}/{own} imports {target} ({found.name})"


def _refused(layer: str, found: Import) -> str | None:
    target = layer_of_import(found.name)
    if target is not None:
        return None if target in MAY_IMPORT[layer] else f"{layer} imports {target} ({found.name})"
    if not is_standard(found.name):
        library = found.name.split(".")[0]
        known = LIBRARIES.get(layer, frozenset({library}))
        return None if library in known else f"{layer} imports the library {library}"
    if layer == "core" and not _within(found.name, PURE_MODULES):
        return f"core imports {found.name}, which is not among the pure modules"
    if layer == "service" and _within(found.name, UNSEEDED_MODULES):
        return f"service imports {found.name}: that is for an adapter behind a port"
    return None


def _within(name: str, modules: frozenset[str]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in modules)


def impure(source: Source) -> Iterator[str]:
    """Uses of the clock, of files or of the terminal in the core."""
    if layer_of_path(source.path) != "core":
        return
    for node in ast.walk(source.tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in IMPURE_NAMES:
                yield f"{source.path}:{node.lineno}: {name}() in the core"
            case ast.Attribute(
                value=ast.Name(id="datetime" | "date") | ast.Attribute(attr="datetime" | "date"),
                attr=name,
            ) if name in CLOCK_READS:
                yield f"{source.path}:{node.lineno}: .{name} in the core: time is an argument"


def touches_environment(source: Source) -> Iterator[str]:
    """Lines that read or write the process environment."""
    for node in ast.walk(source.tree):
        match node:
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name in ENVIRONMENT:
                yield f"{source.path}:{node.lineno}: os.{name}"
            case ast.ImportFrom(module="os", names=names):
                for alias in names:
                    if alias.name in ENVIRONMENT:
                        yield f"{source.path}:{node.lineno}: os.{alias.name}"
            case ast.Import(names=names):
                for alias in names:
                    if alias.name == "os" and alias.asname:
                        yield f"{source.path}:{node.lineno}: os under another name"


def reads_environment(source: Source) -> Iterator[str]:
    """Uses of the environment outside the settings, the exceptions, and tests.

    Tests prepare the environment of the processes that they start.
    """
    if source.path.parent == SETTINGS or source.path in ENVIRONMENT_READERS:
        return
    if layer_of_path(source.path) != "tests":
        yield from touches_environment(source)


def refuses_for_the_api(source: Source) -> Iterator[str]:
    """A port that answers for the API, or with an error that says nothing of what is missing."""
    if layer_of_path(source.path) not in {"ports", "adapters"}:
        return
    for found in imports(source):
        if found.name == f"{ENGINE}.errors.Problem":
            yield f"{source.path}:{found.line}: a Problem is for a use case: raise a PortRefusal"
    for node in ast.walk(source.tree):
        match node:
            case ast.Raise(exc=ast.Name(id="KeyError") | ast.Call(func=ast.Name(id="KeyError"))):
                yield f"{source.path}:{node.lineno}: a bare KeyError: raise a PortRefusal"


Rule = Callable[[Source], Iterator[str]]
RULES: tuple[Rule, ...] = (
    against_the_arrows,
    against_the_folders,
    impure,
    reads_environment,
    refuses_for_the_api,
)


@pytest.mark.parametrize("rule", RULES)
def test_the_code_keeps_the_layers(rule: Rule) -> None:
    assert python_sources()
    assert [problem for source in python_sources() for problem in rule(source)] == []


def test_every_exception_for_the_environment_is_needed() -> None:
    by_path = {source.path: source for source in python_sources()}
    for path in ENVIRONMENT_READERS:
        assert list(touches_environment(by_path[path])) != []


BAD = [
    ("core/a.py", "from stepwell_engine.service import advance"),
    ("core/a.py", "from stepwell_engine import ports"),
    ("core/a.py", "from .. import ports"),
    ("core/a.py", "from ..service.advance import Advance"),
    ("core/a.py", "def f():\n    import stepwell_engine.adapters.memory.runs"),
    ("core/a.py", "if TYPE_CHECKING:\n    from stepwell_engine.ports import Runs"),
    ("core/a.py", "importlib.import_module('stepwell_engine.ports')"),
    ("core/run/a.py", "from stepwell_engine.core.declared import decide"),
    ("core/values/a.py", "from stepwell_engine.core.run.head import Head"),
    ("core/odd/a.py", "import json"),
    ("core/a.py", "import os"),
    ("core/a.py", "from os import path"),
    ("core/a.py", "import time"),
    ("core/a.py", "import random"),
    ("core/a.py", "import logging"),
    ("core/a.py", "import urllib.request"),
    ("core/a.py", "from urllib import request"),
    ("core/a.py", "import pydantic"),
    ("core/a.py", "datetime.now(UTC)"),
    ("core/a.py", "datetime.date.today()"),
    ("core/a.py", "clock = datetime.now"),
    ("core/a.py", "open('a')"),
    ("core/a.py", "print(1)"),
    ("service/a.py", "from stepwell_engine.adapters.memory import runs"),
    ("service/a.py", "from stepwell_engine.api import views"),
    ("service/a.py", "from stepwell_engine import wiring"),
    ("service/a.py", "import threading"),
    ("service/a.py", "from time import monotonic"),
    ("service/a.py", "import requests"),
    ("service/a.py", "import os\nos.environ['A']"),
    ("adapters/http/a.py", "from stepwell_engine.service import starts"),
    ("adapters/http/a.py", "from stepwell_engine.api import views"),
    ("adapters/http/a.py", "from ...api import views"),
    ("adapters/http/a.py", "from stepwell_engine.settings import Settings"),
    ("adapters/http/a.py", "from os import getenv"),
    ("adapters/http/a.py", "import os as operating_system"),
    ("adapters/sqs/a.py", "from stepwell_engine.errors import Problem, StoreError"),
    ("adapters/sqs/a.py", "raise KeyError(queue)"),
    ("ports/a.py", "from stepwell_engine.errors import Problem"),
    ("api/a.py", "from stepwell_engine.adapters.memory import runs"),
    ("api/a.py", "import boto3"),
    ("ports.py", "from stepwell_engine.adapters.memory import runs"),
    ("ports.py", "from stepwell_engine.service import advance"),
    ("limits.py", "from stepwell_engine import errors"),
    ("errors.py", "from stepwell_engine import limits"),
    ("settings/a.py", "from stepwell_engine import wiring"),
    ("wiring/a.py", "import local.host"),
    ("wiring/a.py", "from functions import api"),
    ("wiring/a.py", "import os\nos.getenv('A')"),
    ("unknown/a.py", "import json"),
    ("__init__.py", "from stepwell_engine import core"),
]
BAD_AT_THE_TOP = [
    ("functions/api/a.py", "from stepwell_engine.adapters.memory import runs"),
    ("functions/api/a.py", "from local import host"),
    ("functions/tick.py", "import boto3"),
    ("local/a.py", "from stepwell_engine.adapters.memory import runs"),
    ("local/a.py", "from functions.api import handler"),
    ("local/a.py", "from tests import sim"),
    ("infra/a.py", "from stepwell_engine.wiring import aws"),
    ("examples/a.py", "from stepwell_engine.core import run"),
    ("examples/a.py", "import local"),
    ("sdk/python/stepwell/a.py", "from stepwell_engine import limits"),
    ("elsewhere/a.py", "import json"),
]


@pytest.mark.parametrize(
    ("path", "text"),
    [(f"shared/{ENGINE}/{path}", text) for path, text in BAD] + BAD_AT_THE_TOP,
)
def test_code_that_breaks_the_layers_is_found(path: str, text: str) -> None:
    source = Source(PurePosixPath(path), text)
    assert [problem for rule in RULES for problem in rule(source)] != []


GOOD = [
    ("shared/stepwell_engine/core/a.py", "from stepwell_engine import limits"),
    ("shared/stepwell_engine/core/declared/a.py", "from stepwell_engine.core.run import head"),
    ("shared/stepwell_engine/core/a.py", "from urllib.parse import urlsplit"),
    ("shared/stepwell_engine/core/a.py", "def f(now: int) -> int:\n    return now"),
    ("shared/stepwell_engine/core/a.py", "later = self.now + 1"),
    ("shared/stepwell_engine/service/a.py", "from stepwell_engine.ports import Runs"),
    ("shared/stepwell_engine/adapters/a.py", "import sqlite3, requests, time"),
    ("shared/stepwell_engine/adapters/a.py", "from stepwell_engine.errors import QueueNotFound"),
    ("shared/stepwell_engine/api/a.py", "from stepwell_engine.service import starts"),
    ("shared/stepwell_engine/settings/a.py", "import os\nos.environ['A']"),
    ("shared/stepwell_engine/wiring/a.py", "from stepwell_engine.adapters.memory import runs"),
    ("local/a.py", "from stepwell_engine.api import app"),
    ("examples/a.py", "import requests"),
    ("tests/a.py", "import os\nos.environ['A']"),
]


@pytest.mark.parametrize(("path", "text"), GOOD)
def test_code_that_keeps_the_layers_passes(path: str, text: str) -> None:
    source = Source(PurePosixPath(path), text)
    assert [problem for rule in RULES for problem in rule(source)] == []
