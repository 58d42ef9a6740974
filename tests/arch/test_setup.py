"""Set-up needs one thing on the machine, and says so in one sentence when it is missing."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.arch.sources import ROOT

TARGETS = {
    *("help", "up", "demo", "test", "check", "sim", "bench"),
    *("synth", "deploy", "destroy", "format", "lock", "clean"),
}


def setup(folder: Path, path: Path) -> subprocess.CompletedProcess[str]:
    """Run the set-up in a folder, with nothing on PATH but a folder of our own."""
    shell = shutil.which("sh")
    assert shell is not None
    return subprocess.run(
        [shell, str(ROOT / "scripts" / "setup.sh")],
        cwd=folder,
        env={"PATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("exits", [None, 1, 127], ids=["none", "too old", "an empty shim"])
def test_without_a_fitting_python_one_sentence_says_what_is_needed(
    tmp_path: Path, exits: int | None
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    if exits is not None:
        for name in ("python3", "python3.12"):
            program = programs / name
            program.write_text(f"#!/bin/sh\necho noise >&2\nexit {exits}\n")
            program.chmod(0o755)
    done = setup(tmp_path, programs)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("Stepwell needs Python 3.11, 3.12 or 3.13 with its venv module")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / ".venv").exists()


def make(*arguments: str) -> str:
    """What make prints, the set-up taken as done."""
    done = subprocess.run(
        ["make", "--no-print-directory", "--old-file", ".venv/.installed", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_make_lists_every_target_with_a_description() -> None:
    lines = [line.split(maxsplit=2) for line in make().splitlines()]
    assert {line[1] for line in lines} == TARGETS
    assert all(len(line) == 3 for line in lines)


def test_only_variables_given_to_make_become_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "3000")
    assert "--port" not in make("-n", "up")
    assert '--port "9" --data "a b"' in make("-n", "up", "PORT=9", "DATA=a b")
    assert '--seeds "10" --start "7"' in make("-n", "sim", "SEEDS=10", "START=7")


def test_continuous_integration_runs_the_test_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "make demo" in readme
    assert "make test" in readme
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    commands = [line for line in script.splitlines() if line and not line.startswith("#")]
    assert commands[0] == "set -euo pipefail"
    assert commands[-1] == "make test"


def test_every_command_of_make_in_the_documents_exists() -> None:
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    for document in documents:
        named = re.findall(r"`make ([a-z]+)|^make ([a-z]+)", document.read_text("utf-8"), re.M)
        assert {first or second for first, second in named} <= TARGETS
