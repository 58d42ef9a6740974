"""Set-up needs one thing on the machine, and says so in one sentence when it is missing."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.arch.sources import ROOT, python_sources

TARGETS = {
    *("help", "up", "demo", "test", "check", "e2e", "sim", "bench"),
    *("synth", "deploy", "destroy", "format", "lock", "clean"),
}


MADE = (".venv/.installed", ".venv-e2e/.installed")


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
        ["make", "--no-print-directory", *(f"--old-file={made}" for made in MADE), *arguments],
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
        text = document.read_text("utf-8")
        named = re.findall(r"`make ([a-z0-9]+)|^make ([a-z0-9]+)", text, re.M)
        assert {first or second for first, second in named} <= TARGETS


@pytest.mark.parametrize("target", ["test", "check", "e2e"])
def test_what_runs_the_emulator_sets_it_up(target: str) -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "-n", "--always-make", target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    setups = [lines.index(f"sh scripts/{name}") for name in ("setup.sh", "setup_e2e.sh")]
    run = next(at for at, line in enumerate(lines) if "-m e2e" in line)
    assert setups == sorted(setups)
    assert setups[-1] < run


def test_make_looks_for_tests_on_the_emulator_where_they_are() -> None:
    line = next(line for line in make("-n", "e2e").splitlines() if "-m e2e" in line)
    folders = [word for word in line.split() if word.startswith("tests/")]
    marked = [
        source.path.as_posix()
        for source in python_sources()
        if source.path.parts[0] == "tests" and "pytest.mark.e2e" in source.text
    ]
    elsewhere = [path for path in marked if not path.startswith(tuple(folders))]
    assert marked != []
    assert elsewhere == ["tests/arch/test_setup.py"]
