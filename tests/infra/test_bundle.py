"""Code for Lambda is compiled ahead, by a Python of the functions' version, if there is one."""

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from infra.assembly import Target, read
from infra.bundle import UNCOMPILED, Compiler, find_compiler
from tests.infra.templates import Assembly

OURS = ".".join(platform.python_version_tuple()[:2])
OWN = Compiler(sys.executable, platform.python_version())
UNCHECKED = (1).to_bytes(4, "little")  # the flags of a compiled file: by hash, not checked
FUNCTIONS = ("Api", "Executor", "Tick")


def written(folder: Path) -> Path:
    """A package in a folder."""
    package = folder / "python" / "shop"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("NAMES = {'a', 'b', 'c'} & {'c', 'd'}\n")
    (package / "prices.py").write_text("def price(event):\n    return len(event) in {1, 2, 3}\n")
    return folder


def compiled(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.pyc")
    }


def imported(python: str, folder: Path, module: str) -> subprocess.CompletedProcess[str]:
    """Import a module, only from that folder and the standard library."""
    code = f"import sys; sys.path.insert(0, sys.argv[1]); import {module}; print({module}.__file__)"
    return subprocess.run(
        [python, "-I", "-S", "-c", code, str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )


def spoil(folder: Path) -> None:
    """Whatever compiles a source from now on, fails."""
    for path in folder.rglob("*.py"):
        path.write_text("this is no Python\n")


def code_of(assembly: Assembly) -> list[Path]:
    """The layer's folder, and those of the functions."""
    compute = assembly.template("compute")
    functions = [compute.one("Lambda::Function", f"{name}Function")["Code"] for name in FUNCTIONS]
    contents = [compute.one("Lambda::LayerVersion")["Content"], *functions]
    return [assembly.asset(content) for content in contents]


def keys(assembly: Assembly) -> dict[str, str]:
    """Folders that are zipped, and what they are called in S3."""
    stacks = read(assembly.folder, Target("123456789012", "eu-west-1"))
    return {file.source.name: file.key for one in stacks for file in one.files if file.zipped}


def tag(compiler: Compiler | None) -> str:
    """What the names of compiled files contain."""
    version = "" if compiler is None else compiler.version
    return "cpython-" + "".join(version.split(".")[:2])


@pytest.fixture(scope="module")
def by() -> dict[str, Compiler | None]:
    """What compiled the code of which assembly."""
    return {"default": find_compiler(), "chosen": OWN, "plain": None}


# --- who compiles -----------------------------------------------------------------------------


def test_the_running_python_compiles_for_its_own_version() -> None:
    assert find_compiler(OURS, (sys.executable,)) == OWN


def test_a_python_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    shim = tmp_path / "python"
    shim.write_text("#!/bin/sh\necho not installed >&2\nexit 127\n")
    shim.chmod(0o755)
    missing, folder = tmp_path / "missing", tmp_path
    candidates = [str(one) for one in (shim, missing, folder, sys.executable)]
    assert find_compiler(OURS, candidates) == OWN


@pytest.mark.parametrize("said", ["cpython-310 3.10.9", "pypy313 3.13.1", "", "3.13"])
def test_a_python_of_another_kind_compiles_nothing(tmp_path: Path, said: str) -> None:
    other = tmp_path / "python"
    other.write_text(f"#!/bin/sh\necho '{said}'\n")
    other.chmod(0o755)
    assert find_compiler("3.13", (str(other),)) is None


def test_a_python_on_path_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python3.13"
    python.write_text("#!/bin/sh\necho cpython-313 3.13.7\n")
    python.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert find_compiler("3.13", ("python3.13",)) == Compiler("python3.13", "3.13.7")


# --- what it makes ----------------------------------------------------------------------------


def test_the_same_sources_give_the_same_bytes_wherever_they_lie(tmp_path: Path) -> None:
    one, other = written(tmp_path / "one"), written(tmp_path / "two" / "deep")
    for folder in (one, other):
        OWN.compile(folder, "/opt")
    assert len(compiled(one)) == 2
    assert compiled(one) == compiled(other)
    assert all(str(tmp_path).encode() not in content for content in compiled(one).values())


def test_a_compiled_file_counts_whatever_its_source_says(tmp_path: Path) -> None:
    folder = written(tmp_path / "layer")
    OWN.compile(folder, "/opt")
    before = compiled(folder)
    assert {content[4:8] for content in before.values()} == {UNCHECKED}
    spoil(folder)
    done = imported(OWN.command, folder / "python", "shop.prices")
    assert done.stdout.strip() == str(folder / "python" / "shop" / "prices.py"), done.stderr
    assert compiled(folder) == before


def test_a_source_that_is_no_python_stops_the_synthesis(tmp_path: Path) -> None:
    folder = written(tmp_path / "layer")
    spoil(folder)
    with pytest.raises(subprocess.CalledProcessError):
        OWN.compile(folder, "/opt")


# --- what is deployed -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["default", "chosen", "plain"])
def test_all_code_is_compiled_or_none(
    request: pytest.FixtureRequest, by: dict[str, Compiler | None], name: str
) -> None:
    compiler = by[name]
    for folder in code_of(request.getfixturevalue(name)):
        sources = [path.relative_to(folder) for path in folder.rglob("*.py")]
        assert sources
        assert compiled(folder).keys() == {
            (one.parent / "__pycache__" / f"{one.stem}.{tag(compiler)}.pyc").as_posix()
            for one in sources
            if compiler is not None
        }


@pytest.mark.parametrize("name", ["default", "chosen"])
def test_code_is_loaded_as_it_was_compiled(
    request: pytest.FixtureRequest, by: dict[str, Compiler | None], name: str, tmp_path: Path
) -> None:
    compiler = by[name]
    layer, api, *_ = code_of(request.getfixturevalue(name))
    modules = ["stepwell_engine.core.declared.decide"] + ["urllib3"] * (name == "default")
    for folder, module in [(api, "functions"), *((layer / "python", one) for one in modules)]:
        copy = tmp_path / module
        shutil.copytree(folder, copy)
        spoil(copy)
        before = compiled(copy)
        done = imported(sys.executable if compiler is None else compiler.command, copy, module)
        assert (done.returncode == 0) == (compiler is not None), done.stderr
        assert compiled(copy) == before


def test_the_same_code_has_the_same_name(default: Assembly, mailed: Assembly) -> None:
    assert len(keys(default)) == len(keys(mailed)) == 4
    # The layer of one of them has no packages.
    assert len(keys(default).items() & keys(mailed).items()) == 3


def test_code_that_is_compiled_otherwise_has_another_name(
    chosen: Assembly, mailed: Assembly, plain: Assembly, by: dict[str, Compiler | None]
) -> None:
    assert keys(chosen).keys().isdisjoint(keys(plain))
    assert (keys(mailed) == keys(plain)) == (by["default"] is None)


def test_one_line_says_that_code_is_not_compiled_and_what_would_be_right(
    assemblies: Path, by: dict[str, Compiler | None]
) -> None:
    said = json.loads((assemblies / "said.json").read_text())
    for name, compiler in by.items():
        assert said[name].splitlines().count(UNCOMPILED) == (compiler is None)
    assert "\n" not in UNCOMPILED
    assert "python3.13 on PATH" in UNCOMPILED
