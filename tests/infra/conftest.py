"""One synthesis for the whole test run, whichever worker needs it first."""

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from tests.arch.sources import ROOT
from tests.infra.templates import Assembly


@pytest.fixture(scope="session")
def assemblies(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the assemblies of tests/infra/synthesize.py."""
    base = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):  # xdist gives each worker a folder in a common one
        base = base.parent
    folder = base / "assemblies"
    with (base / "assemblies.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            command = [sys.executable, "-m", "tests.infra.synthesize", str(folder)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            (folder / "done").touch()
    return folder


@pytest.fixture(scope="session")
def default(assemblies: Path) -> Assembly:
    """An installation without any context value."""
    return Assembly(assemblies / "default", "stepwell-dev")


@pytest.fixture(scope="session")
def chosen(assemblies: Path) -> Assembly:
    """An installation with every context value, its code compiled by the Python of the tests."""
    return Assembly(assemblies / "chosen", "stepwell-shop")


@pytest.fixture(scope="session")
def mailed(assemblies: Path) -> Assembly:
    """An installation that mails its alarms."""
    return Assembly(assemblies / "mailed", "stepwell-dev")


@pytest.fixture(scope="session")
def plain(assemblies: Path) -> Assembly:
    """An installation whose code is not compiled."""
    return Assembly(assemblies / "plain", "stepwell-dev")
