"""What the engine uses of libraries beyond what they document.

An update of a library may change it without a word. When an entry fails, do what its `remedy` says,
then make the entry fit; when nothing uses one any more, take it out. Better: find a documented way.
"""

import ast
import importlib
import inspect
import pkgutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.arch.sources import ROOT

ENGINE = "shared/stepwell_engine"
PACKAGES = ("stepwell_engine", "functions", "local")
FOLDERS = ("shared", "functions", "local", "infra", "tools", "examples")


@dataclass(frozen=True)
class Use:
    """What one file of ours uses of a library.

    `owner`: module and class, or the module alone; `names`: what it must have, a method with its
    parameters, or an attribute.
    """

    library: str
    owner: str
    names: tuple[str, ...]
    user: str
    remedy: str


USES = (
    Use(
        "uvicorn",
        "uvicorn.protocols.http.httptools_impl:HttpToolsProtocol",
        (
            "connection_made(transport)",
            "data_received(data)",
            "on_message_begin()",
            "on_url(url)",
            "on_header(name, value)",
            "on_headers_complete()",
            "on_message_complete()",
            "on_response_complete()",
            "send_400_response(msg)",
            "shutdown()",
            "connections",
            "cycle",
            "loop",
            "pipeline",
            "transport",
        ),
        "local/connections.py",
        "Read httptools_impl.py: each callback must still be called where `Connection` counts.",
    ),
    Use(
        "uvicorn",
        "uvicorn.protocols.http.httptools_impl:RequestResponseCycle",
        ("disconnected", "message_event", "response_complete", "response_started"),
        "local/connections.py",
        "`Connection._refuse` ends a request whose body is still coming: find how receive() ends.",
    ),
    Use(
        "uvicorn",
        "uvicorn.server:Server",
        ("server_state", "should_exit"),
        "local/server.py",
        "Find how a server in a thread is told to stop, and where it keeps its state.",
    ),
    Use(
        "uvicorn",
        "uvicorn.server:ServerState",
        ("connections",),
        "local/server.py",
        "`Server._look` goes through all open connections: find where uvicorn keeps them.",
    ),
    Use(
        "aws-lambda-powertools",
        "aws_lambda_powertools.event_handler:APIGatewayHttpResolver",
        (
            "_resolve()",
            "_build_response(response_builder)",
            "_compile_regex(rule, base_regex)",
            "context",
            "current_event",
            "lambda_context",
        ),
        f"{ENGINE}/api/app.py",
        "Compare `_Resolver` with resolve() and _compile_regex() of the new version.",
    ),
    Use(
        "aws-lambda-powertools",
        "aws_lambda_powertools.utilities.batch:BatchProcessor",
        ("_process_record(record)", "process()", "records"),
        f"{ENGINE}/lambdas/batch.py",
        "`Concurrent.process` does what process() does, in threads: compare the two.",
    ),
    Use(
        "pynamodb",
        "pynamodb.models:Model",
        ("_get_schema()",),
        f"{ENGINE}/adapters/dynamodb/models.py",
        "Take the keys and indexes of a table from wherever create_table() now takes them.",
    ),
    Use(
        "psycopg",
        "psycopg.adapt:Transformer",
        (
            "get_loader(oid, format)",
            "load_row(row, make_row)",
            "set_loader_types(types, format)",
            "set_pgresult(result, set_loaders, format)",
        ),
        f"{ENGINE}/adapters/postgres/rows.py",
        "`Rows` reads cells one by one: see how a cursor of the new version loads a row.",
    ),
    Use(
        "Python",
        "http.client:HTTPConnection",
        ("auto_open", "sock"),
        f"{ENGINE}/adapters/http/transport.py",
        "`_Connection` must never connect by itself: find what keeps send() from it.",
    ),
)

# Keys that a library looks up in the context of a call.
KEYS = (
    (
        "botocore",
        "botocore.httpsession",
        "read_timeout",
        f"{ENGINE}/adapters/aws_clients.py",
        "A call's own timeout is no longer read from its context: find how one is given now.",
    ),
)


@cache
def names_of(owner: Any) -> set[str]:
    """What an instance of the class, or a module, has: its initializer says the rest."""
    found = set(dir(owner))
    for one in getattr(owner, "__mro__", ()):
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(one)))
        except (OSError, TypeError):  # built in, or compiled
            continue
        found |= {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and ast.unparse(node.value) == "self"
        }
        found |= {
            node.target.id
            for node in ast.walk(tree)
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        }
    return found


def parameters_of(method: Any) -> str:
    names = [name for name in inspect.signature(method).parameters if name != "self"]
    return ", ".join(names)


def load(dotted: str) -> Any:
    module, _, name = dotted.partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found


@pytest.mark.parametrize("use", USES, ids=lambda use: f"{use.library}: {use.owner}")
def test_a_library_still_has_what_is_used_of_it(use: Use) -> None:
    owner = load(use.owner)
    there = names_of(owner)
    missing = []
    for wanted in use.names:
        name, _, parameters = wanted.partition("(")
        if name not in there:
            missing.append(f"{wanted} is gone")
        elif wanted != name and parameters_of(getattr(owner, name)) != parameters.rstrip(")"):
            missing.append(f"{name}({parameters_of(getattr(owner, name))}) was {wanted}")
    assert not missing, f"{use.library}, {use.owner}: {missing}; used by {use.user}. {use.remedy}"


@pytest.mark.parametrize(("library", "module", "key", "user", "remedy"), KEYS)
def test_a_library_still_reads_what_it_is_given(
    library: str, module: str, key: str, user: str, remedy: str
) -> None:
    text = inspect.getsource(load(module))
    assert f"context.get('{key}')" in text, f"{library}; used by {user}. {remedy}"
    assert f'context["{key}"]' in (ROOT / user).read_text("utf-8")


@pytest.mark.parametrize("use", USES, ids=lambda use: f"{use.user}: {use.owner}")
def test_what_is_listed_is_used(use: Use) -> None:
    tree = ast.parse((ROOT / use.user).read_text("utf-8"))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    used |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert {wanted.partition("(")[0] for wanted in use.names} <= used


# --- nothing is missing from the list ------------------------------------------------------------


def own_classes() -> Iterator[type]:
    """The classes of the engine and its hosts that have a library's class among their bases."""
    for package in PACKAGES:
        for found in pkgutil.walk_packages(load(package).__path__, f"{package}."):
            if found.name.endswith("__main__"):
                continue
            module = importlib.import_module(found.name)
            for one in vars(module).values():
                if inspect.isclass(one) and one.__module__ == found.name and any(foreign(one)):
                    yield one


def foreign(own: type) -> Iterator[type]:
    """The bases of a class that are a library's."""
    for base in own.__mro__:
        top = base.__module__.partition(".")[0]
        if top not in PACKAGES and top not in sys.stdlib_module_names:
            yield base


def private_of(own: type) -> set[str]:
    """Private names of its library's that a class uses or replaces."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(own)))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    theirs = set(chain.from_iterable(names_of(base) for base in foreign(own)))
    private = {name for name in used if name.startswith("_") and not name.startswith("__")}
    return private & theirs


def test_every_private_name_that_a_class_shares_with_its_library_is_listed() -> None:
    found = {}
    for own in own_classes():
        user = Path(inspect.getfile(own)).relative_to(ROOT).as_posix()
        listed = chain.from_iterable(use.names for use in USES if use.user == user)
        left = private_of(own) - {name.partition("(")[0] for name in listed}
        if left:
            found[f"{user}: {own.__name__}"] = left
    assert found == {}


def test_every_private_name_of_another_object_is_listed() -> None:
    """Lint (SLF001) finds each; what it is told to let pass has to be in the list."""
    for file in sorted(chain.from_iterable((ROOT / top).rglob("*.py") for top in FOLDERS)):
        user = file.relative_to(ROOT).as_posix()
        listed = set(chain.from_iterable(use.names for use in USES if use.user == user))
        for line in file.read_text("utf-8").splitlines():
            if "noqa: SLF001" in line:
                assert any(f".{name.partition('(')[0]}(" in line for name in listed), line
