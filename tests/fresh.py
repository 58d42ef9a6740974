"""Code run by a fresh interpreter, with an environment of our own."""

import subprocess
import sys
from collections.abc import Mapping

from tests.arch.sources import ROOT


def run(code: str, environment: Mapping[str, str] | None = None) -> str:
    """What the code prints; it fails the test if it fails."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=dict(environment or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
