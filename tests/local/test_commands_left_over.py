"""The commands of a host that has ended do not run on beside those of the next one."""

import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from stepwell_engine.adapters.runners import command_family
from tests.local.process import Host, hosting

SECONDS = 10  # far less than the command would take


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@contextmanager
def pipe(path: Path) -> Iterator[int]:
    """The reading end of a new fifo."""
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read(descriptor: int) -> bytes:
    """What is written to a pipe next; nothing once every process that had it open has ended."""
    assert select.select([descriptor], [], [], SECONDS)[0], "somebody still has the pipe"
    return os.read(descriptor, 100)


def start(host: Host, script: str) -> str:
    """Start a run whose only step runs a script once its event is there: the watcher knows then."""
    host.ok("PUT", "/functions/f", {"command": ["sh", "-c", f"cat > /dev/null; {script}"]})
    return host.start("w", {"key": "a", "kind": "function", "target": "f"})


def family(fifo: Path) -> str:
    """A program with a child, one in a session of its own, and its child."""
    child = "trap '' TERM INT HUP; sleep 600 & setsid sh -c 'sleep 600 & wait' & echo begun >&3"
    return f"exec 3> {fifo}; {child}; wait"


def watcher(host: Host) -> psutil.Process:
    """The process that watches a host's commands."""
    (found,) = (
        child
        for child in psutil.Process(host.process.pid).children()
        if command_family.__file__ in child.cmdline()
    )
    return found


def test_a_killed_host_takes_its_commands_and_their_descendants_with_it(
    data: Path, tmp_path: Path
) -> None:
    with pipe(tmp_path / "fifo") as held, hosting(data) as host:
        start(host, family(tmp_path / "fifo"))
        assert read(held) == b"begun\n"
        host.end(signal.SIGKILL)
        assert read(held) == b""


def test_a_watcher_that_was_killed_is_replaced_with_the_next_command(
    data: Path, tmp_path: Path
) -> None:
    with pipe(tmp_path / "fifo") as held, hosting(data) as host:
        start(host, family(tmp_path / "fifo"))
        assert read(held) == b"begun\n"
        killed = watcher(host)
        killed.kill()
        while killed.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.005)
        start(host, family(tmp_path / "fifo"))
        assert read(held) == b"begun\n"
        host.end(signal.SIGKILL)
        assert read(held) == b""


def test_what_a_function_forks_off_keeps_no_command_alive(data: Path, tmp_path: Path) -> None:
    with pipe(tmp_path / "fifo") as held, hosting(data) as host:
        start(host, family(tmp_path / "fifo"))
        assert read(held) == b"begun\n"
        host.ok("PUT", "/functions/fork", {"python": "chores:fork"})
        run_id = host.start("fork", {"key": "fork", "kind": "function", "target": "fork"})
        child = host.finish("fork", run_id)["output"]["child"]
        try:
            host.end(signal.SIGKILL)
            assert read(held) == b""
        finally:
            os.kill(child, signal.SIGTERM)


def test_a_host_that_stops_in_order_waits_for_its_command_and_leaves_nothing(
    data: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    script = (
        f"exec 3> {tmp_path / 'fifo'}; echo begun >&3; while [ ! -e {gate} ]; do sleep 0.01; done"
    )
    with pipe(tmp_path / "fifo") as held, hosting(data) as host:
        run_id = start(host, script)
        assert read(held) == b"begun\n"
        watching = watcher(host)
        host.process.send_signal(signal.SIGTERM)
        host.wait_until_said("stopping")
        gate.touch()
        assert host.process.wait() == 0
        assert read(held) == b""
        assert not watching.is_running()
    with hosting(data) as host:
        run = host.finish("w", run_id)
    assert (run["status"], run["steps"][0]["attempt"]) == ("succeeded", 1)


def test_a_command_that_is_not_waited_for_ends_with_its_host_and_costs_no_attempt(
    data: Path, tmp_path: Path
) -> None:
    done = tmp_path / "done"
    script = f"test -e {done} && exit; {family(tmp_path / 'fifo')}"
    with pipe(tmp_path / "fifo") as held:
        with hosting(data, "--stop-seconds", "0") as host:
            run_id = start(host, script)
            assert read(held) == b"begun\n"
            assert host.end() == 0
        assert read(held) == b""
        done.touch()
        with hosting(data) as host:
            run = host.finish("w", run_id)
    assert (run["status"], run["steps"][0]["attempt"]) == ("succeeded", 1)
