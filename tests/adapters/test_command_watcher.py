"""A host that is killed between the start of a program and the word of it to the watcher."""

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, signal, subprocess, sys
from stepwell_engine.adapters.runners.command_watcher import CommandWatcher

watcher = CommandWatcher()
watcher.start()
reader, writer = os.pipe()
watcher.expect(reader)
shell = f"exec 3> {sys.argv[1]}; sleep 600 & setsid sleep 600 & echo begun >&3; wait"
subprocess.Popen(["sh", "-c", shell], stdin=reader, start_new_session=True)
while not os.path.exists(sys.argv[2]):
    pass
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows whose stdin a pipe is")
def test_the_program_is_killed_nevertheless(tmp_path: Path) -> None:
    fifo, gate = tmp_path / "fifo", tmp_path / "gate"
    os.mkfifo(fifo)
    held = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    with subprocess.Popen([sys.executable, "-c", SCRIPT, fifo, gate]) as host:
        for expected in (b"begun\n", b""):
            assert select.select([held], [], [], 10)[0], "somebody still has the pipe"
            assert os.read(held, 100) == expected
            gate.touch()
    assert host.returncode < 0
    os.close(held)
