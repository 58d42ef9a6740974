"""The demo as a person runs it, and its checks, which can fail."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "examples.order_pipeline"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Temporary folders are made in tmp_path, so that a test sees what is left of them."""
    return os.environ | {"TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}


def test_the_demo_survives_the_kill_and_leaves_nothing_behind(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    demo = subprocess.run(
        COMMAND, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )

    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert demo.stderr == ""
    assert "\x1b" not in demo.stdout
    assert demo.stdout.count("✓ holds") == 9
    for line in ("kill -9", "Engine is back", "step notify: succeeded", "The run has ended"):
        assert line in demo.stdout
    assert list(tmp_path.iterdir()) == []
    assert not any(_alive(pid) for pid in _engines(demo.stdout))


def test_an_interrupted_demo_stops_everything(tmp_path: Path, environment: dict[str, str]) -> None:
    with subprocess.Popen(
        COMMAND, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        shown = list(_until("kill -9", demo.stdout))  # PostgreSQL has lost its engine just now
        (file,) = tmp_path.glob("*/data/**/postmaster.pid")
        postgres = int(file.read_text("utf-8").splitlines()[0])
        assert _alive(postgres)
        demo.send_signal(signal.SIGINT)
        shown.append(demo.stdout.read())

    assert demo.returncode == 130
    assert "everything is stopped" in shown[-1]
    assert list(tmp_path.iterdir()) == []
    assert not any(_alive(pid) for pid in (postgres, *_engines("".join(shown))))


def test_a_folder_that_is_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    demo = subprocess.run(
        [*COMMAND, "--data", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert demo.returncode == 2
    assert f"{tmp_path} is not empty" in demo.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_the_workflow_beside_the_demo_is_the_order_pipeline() -> None:
    text = (ROOT / "examples" / "order_pipeline" / "workflow.json").read_text("utf-8")
    steps: list[dict[str, Any]] = json.loads(text)["steps"]

    assert [(step["key"], step["kind"]) for step in steps] == [
        ("charge", "webhook"),
        ("provision", "sql"),
        ("cool_off", "sleep"),
        ("notify", "enqueue"),
    ]
    assert steps[0]["secret"].startswith("whsec_")
    assert steps[0]["compensate"]["kind"] == "webhook"


def _until(text: str, lines: IO[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if text in line:
            return
    raise AssertionError(f"the demo ended without {text}")


def _engines(shown: str) -> list[int]:
    """The processes that the demo has named."""
    found = [int(pid) for pid in re.findall(r"process (\d+),", shown)]
    assert found
    return found


def _alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be reaped does not."""
    if not Path("/proc/self").exists():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except OSError:
        return False
