"""Format, lint and types, as part of the test run; and proof that each can fail."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.arch.sources import ROOT


def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a Python module in the root of the repository; `text` is its standard input."""
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_code_is_formatted() -> None:
    done = run("ruff", "format", "--check", ".")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_code_is_clean_of_lint() -> None:
    done = run("ruff", "check", ".")
    assert done.returncode == 0, done.stdout + done.stderr


# From nothing, as on a fresh clone, mypy takes minutes: it reads much of CDK's types.
@pytest.mark.timeout(1_200)
def test_the_types_are_right() -> None:
    done = run("mypy")
    assert done.returncode == 0, done.stdout + done.stderr


def lint(path: str, text: str) -> str:
    """The rules that a file breaks, as ruff prints them."""
    arguments = ["--quiet", "--output-format", "concise", "--stdin-filename", path, "-"]
    return run("ruff", "check", *arguments, text=text).stdout


SERVICE = "shared/stepwell_engine/service/a.py"


@pytest.mark.parametrize(
    ("path", "text", "rule"),
    [
        (SERVICE, "import time\n\nNOW = time.time()\n", "TID251"),
        (SERVICE, "from time import time_ns\n\nNOW = time_ns()\n", "TID251"),
        (SERVICE, "from datetime import UTC, datetime\n\nA = datetime.now(UTC)\n", "TID251"),
        (SERVICE, "import datetime as d\n\nA = d.datetime.utcnow()\n", "TID251"),
        ("tests/core/a.py", "import time\n\nNOW = time.time()\n", "TID251"),
        (SERVICE, "from .starts import Start\n\nA = Start\n", "TID252"),
        (SERVICE, 'print("x")\n', "T201"),
        ("functions/tick.py", 'print("x")\n', "T201"),
        ("tests/core/a.py", 'print("x")\n', "T201"),
        (SERVICE, "A = 1  # TODO: more\n", "FIX002"),
        (SERVICE, "try:\n    A = 1\nexcept Exception:\n    A = 2\n", "BLE001"),
        (SERVICE, "assert True\n", "S101"),
    ],
)
def test_lint_refuses(path: str, text: str, rule: str) -> None:
    assert rule in lint(path, text)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (SERVICE, "import time\n\nDEADLINE = time.monotonic()\n"),
        ("local/a.py", 'print("x")\n'),
        ("examples/a.py", 'print("x")\n'),
        ("tests/sim/a.py", 'print("x")\n'),
    ],
)
def test_lint_allows(path: str, text: str) -> None:
    assert lint(path, text) == ""


def test_a_badly_formatted_file_is_found() -> None:
    assert run("ruff", "format", "--check", "-", text="a = { 'b':1 }\n").returncode == 1


def test_types_are_strict(tmp_path: Path) -> None:
    sample = tmp_path / "sample.py"
    sample.write_text("def f(x): return x\n\na: int = 'a'\nb: list = []\n")
    found = run("mypy", str(sample)).stdout
    for error in ("no-untyped-def", "assignment", "type-arg"):
        assert f"[{error}]" in found
