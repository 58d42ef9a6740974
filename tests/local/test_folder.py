"""What lies in the data folder: the lock and the credentials."""

import fcntl
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from local.credentials import Credentials, load, save
from local.lock import FolderInUse, locked

HELD = Credentials("http://127.0.0.1:8787", "demo", "swt_abc")


def test_credentials_come_back_as_they_were_saved(tmp_path: Path) -> None:
    path = tmp_path / "credentials.json"
    save(path, HELD)
    assert load(path) == HELD
    assert json.loads(path.read_text()) == {
        "url": "http://127.0.0.1:8787",
        "project": "demo",
        "token": "swt_abc",
    }


def test_credentials_are_their_owners_alone_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "credentials.json"
    path.write_text("old")
    path.chmod(0o644)
    save(path, HELD)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '"a"', '{"url": "u", "project": "p"}', '{"url":1,"project":2,"token":3}'],
)
def test_damaged_credentials_count_as_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "credentials.json"
    assert load(path) is None
    path.write_text(content)
    assert load(path) is None


def test_a_locked_folder_refuses_another_process_and_names_the_holder(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from local.lock import FolderInUse, locked\n"
        "try:\n"
        "    with locked(Path(sys.argv[1])): print('locked')\n"
        "except FolderInUse as error: print(error.pid)\n"
    )

    def other() -> str:
        command = [sys.executable, "-c", code, str(tmp_path)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    with locked(tmp_path):
        assert other() == str(os.getpid())
    assert other() == "locked"


def test_the_refusal_is_one_sentence_with_folder_and_process(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(FolderInUse) as caught, locked(tmp_path):
        pass
    assert str(caught.value) == (
        f"the data folder {tmp_path} is in use by the process with id {os.getpid()}: "
        "stop it, or name another"
    )


def test_a_child_that_outlived_the_host_is_named(tmp_path: Path) -> None:
    """Whatever the file says, which the host wrote."""
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        child = subprocess.Popen(["sleep", "600"], pass_fds=[file.fileno()])
        file.write("1\n")
    try:
        with pytest.raises(FolderInUse) as caught, locked(tmp_path):
            pass
        assert caught.value.pid == child.pid
    finally:
        child.kill()
        child.wait()


def test_a_lock_whose_holder_is_gone_is_free(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("1\n")
    with locked(tmp_path):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    assert (tmp_path / "lock").read_text() == ""
