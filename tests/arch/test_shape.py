"""Small files, small functions, no code in `__init__`, no module without a subject."""

import ast
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

import pytest

from tests.arch.sources import ROOT, Source, python_sources, tracked

MAX_FILE = 400
MAX_FUNCTION = 70
MAX_HANDLER = 50
HANDLER_DEPTH = 3  # functions/<name>/handler.py

# Names that say nothing about what is inside.
VAGUE = frozenset({"common", "helper", "helpers", "misc", "util", "utils"})
CODE = frozenset({".py", ".sh", ".js", ".mjs", ".ts", ".tsx", ".css"})


def too_long(path: PurePosixPath, text: str) -> Iterator[str]:
    """Files of code with too many lines. Golden files are data."""
    lines = len(text.splitlines())
    if lines > MAX_FILE and path.suffix in CODE and path.parts[:2] != ("tests", "golden"):
        yield f"{path}: {lines} lines"


def long_functions(source: Source) -> Iterator[str]:
    """Functions with too many lines, their docstring included."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MAX_FUNCTION:
                yield f"{source.path}:{node.lineno}: {node.name} has {lines} lines"


def thick_handlers(source: Source) -> Iterator[str]:
    """Lambda handlers with more to them than passing on, and other modules beside them."""
    if source.path.parts[0] != "functions" or source.path.name == "__init__.py":
        return
    if len(source.path.parts) != HANDLER_DEPTH or source.path.name != "handler.py":
        yield f"{source.path}: functions/ holds functions/<name>/handler.py alone"
    lines = len(source.text.splitlines())
    if lines > MAX_HANDLER:
        yield f"{source.path}: {lines} lines in a handler"


def code_in_init(source: Source) -> Iterator[str]:
    """Statements in an `__init__.py` that are no docstring, no import and no `__all__`."""
    if source.path.name != "__init__.py":
        return
    for node in source.tree.body:
        match node:
            case ast.Expr(value=ast.Constant(value=str())) | ast.Import() | ast.ImportFrom():
                continue
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                continue
        yield f"{source.path}:{node.lineno}: code in __init__"


def vague_name(path: PurePosixPath) -> Iterator[str]:
    """Files and folders of code that are named after nothing."""
    if path.suffix in CODE and not VAGUE.isdisjoint(
        PurePosixPath(part).stem for part in path.parts
    ):
        yield f"{path}: say what is in it"


RULES = (long_functions, thick_handlers, code_in_init)
Rule = Callable[[Source], Iterator[str]]


def test_files_are_short_and_named_after_what_is_in_them() -> None:
    found: list[str] = []
    for path in tracked():
        found += vague_name(path)
        if path.suffix in CODE:
            found += too_long(path, (ROOT / path).read_text("utf-8"))
    assert found == []


@pytest.mark.parametrize("rule", RULES)
def test_functions_handlers_and_packages_are_small(rule: Rule) -> None:
    assert [problem for source in python_sources() for problem in rule(source)] == []


@pytest.mark.parametrize(("lines", "expected"), [(MAX_FILE, 0), (MAX_FILE + 1, 1)])
def test_a_file_past_the_limit_is_found(lines: int, expected: int) -> None:
    text = "pass\n" * lines
    assert len(list(too_long(PurePosixPath("local/a.py"), text))) == expected
    assert list(too_long(PurePosixPath("tests/golden/a.py"), text)) == []


@pytest.mark.parametrize(
    "start", ["def f():\n", "async def f():\n", "class A:\n    def f(self):\n"]
)
@pytest.mark.parametrize(("lines", "expected"), [(MAX_FUNCTION, 0), (MAX_FUNCTION + 1, 1)])
def test_a_function_past_the_limit_is_found(start: str, lines: int, expected: int) -> None:
    source = Source(PurePosixPath("a.py"), start + "        pass\n" * (lines - 1))
    assert len(list(long_functions(source))) == expected


@pytest.mark.parametrize(("lines", "expected"), [(MAX_HANDLER, 0), (MAX_HANDLER + 1, 1)])
def test_a_handler_past_the_limit_is_found(lines: int, expected: int) -> None:
    text = "pass\n" * lines
    path = PurePosixPath("functions/tick/handler.py")
    assert len(list(thick_handlers(Source(path, text)))) == expected


@pytest.mark.parametrize(
    "path", ["functions/tick.py", "functions/api/runs.py", "functions/a/b/handler.py"]
)
def test_a_module_beside_the_handlers_is_found(path: str) -> None:
    assert len(list(thick_handlers(Source(PurePosixPath(path), "pass\n")))) == 1


@pytest.mark.parametrize("code", ["x = 1", "def f(): ...", "if True:\n    import a", "print()"])
def test_code_in_an_init_is_found(code: str) -> None:
    source = Source(PurePosixPath("a/__init__.py"), f'"""A."""\n\nimport b\n\n{code}\n')
    assert len(list(code_in_init(source))) == 1


def test_an_init_may_import_and_say_what_is_public() -> None:
    text = '"""A."""\n\nfrom a import b\n\n__all__ = ["b"]\n'
    assert list(code_in_init(Source(PurePosixPath("a/__init__.py"), text))) == []


@pytest.mark.parametrize("name", ["local/utils.py", "common/a.py", "sdk/node/helpers.ts"])
def test_a_vague_name_is_found(name: str) -> None:
    assert len(list(vague_name(PurePosixPath(name)))) == 1
