"""A host that cannot start says why in one sentence, ends with 2, and leaves all as it was."""

import os
import socket
import sqlite3
from pathlib import Path

import pytest

from tests.local.process import Ended, hosting, refused


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def sentence(ended: Ended) -> str:
    """The one line that the host said."""
    assert ended.code == 2
    (line,) = ended.said.splitlines()
    assert line.startswith("stepwell: ")
    return line


def test_a_second_host_on_the_folder_names_the_first(data: Path) -> None:
    with hosting(data) as host:
        credentials = (data / "credentials.json").read_text()
        said = sentence(refused(data))
        assert f"in use by the process with id {host.process.pid}" in said
        assert (data / "credentials.json").read_text() == credentials
        assert host.ok("GET", "/workflows")["items"] == []


def test_a_busy_port_is_named(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        said = sentence(refused(data, "--port", str(port)))
    assert f"port {port} of 127.0.0.1 cannot be used: Address already in use" in said
    assert "--port" in said
    assert not data.exists()


def test_a_folder_in_use_is_told_before_its_port_is(data: Path) -> None:
    with hosting(data) as host:
        port = host.credentials.url.rpartition(":")[2]
        assert "is in use by" in sentence(refused(data, "--port", port))


def test_a_database_file_that_is_none_is_left_as_it_is(data: Path) -> None:
    data.mkdir()
    garbage = os.urandom(8_192)
    (data / "stepwell.db").write_bytes(garbage)
    said = sentence(refused(data))
    assert "stepwell.db is not a readable SQLite database" in said
    assert (data / "stepwell.db").read_bytes() == garbage
    assert sorted(file.name for file in data.iterdir()) == ["lock", "stepwell.db"]


def test_a_database_of_another_program_is_left_as_it_is(data: Path) -> None:
    data.mkdir()
    with sqlite3.connect(data / "stepwell.db") as connection:
        connection.execute("create table a (b)")
    connection.close()
    assert "holds the tables of another program" in sentence(refused(data))


def test_a_database_of_a_newer_version_asks_for_an_upgrade(data: Path) -> None:
    with hosting(data):
        pass
    connection = sqlite3.connect(data / "stepwell.db")
    connection.execute("pragma user_version = 999")
    connection.close()
    (data.with_name("data.log")).unlink()
    before = (data / "stepwell.db").read_bytes()
    assert "upgrade this installation" in sentence(refused(data))
    assert (data / "stepwell.db").read_bytes() == before


def test_a_lost_key_is_not_replaced(data: Path) -> None:
    with hosting(data):
        pass
    (data / "secret.key").unlink()
    (data.with_name("data.log")).unlink()
    assert "secret.key is missing" in sentence(refused(data))
    assert not (data / "secret.key").exists()


@pytest.mark.parametrize("left", [None, b""])
@pytest.mark.parametrize("gone", [["credentials.json"], ["secret.key"], []])
def test_a_database_that_is_gone_is_not_replaced_by_an_empty_one(
    data: Path, left: bytes | None, gone: list[str]
) -> None:
    with hosting(data) as host:
        token = host.credentials.token
    data.with_name("data.log").unlink()
    for name in ("stepwell.db", *gone):
        (data / name).unlink()
    if left is not None:
        (data / "stepwell.db").write_bytes(left)
    if left is not None and gone == ["credentials.json"]:  # as after a start that was killed
        with hosting(data) as host:
            assert host.credentials.token != token
        return
    before = sorted(file.name for file in data.iterdir())
    said = sentence(refused(data))
    assert "stepwell.db" in said
    assert "restore it from a backup, or name another data folder" in said
    assert sorted(file.name for file in data.iterdir()) == before


def test_another_key_is_refused(data: Path) -> None:
    with hosting(data):
        pass
    data.with_name("data.log").unlink()
    (data / "secret.key").write_text("00" * 32)
    before = (data / "stepwell.db").read_bytes()
    assert "secret.key is not the key that the secrets" in sentence(refused(data))
    assert (data / "stepwell.db").read_bytes() == before


def test_a_file_is_no_data_folder(data: Path) -> None:
    data.write_text("mine")
    assert f"the data folder {data} is a file: name a folder" in sentence(refused(data))
    assert data.read_text() == "mine"


def test_a_place_where_nothing_can_be_made_is_no_data_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = sentence(refused(tmp_path / "file" / "data", log=tmp_path / "log"))
    assert "cannot be used: Not a directory" in said


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--port", "99999"), "--port: should be less than or equal to 65535"),
        (("--workers", "0"), "--workers: should be greater than or equal to 1"),
        (("--functions", "/no/such/folder"), "--functions: path does not point to a directory"),
        (("--dsn", "nowhere"), "--dsn: should be like postgresql://"),
        (("--dsn", "postgres:hidden"), "--dsn: should be like postgresql://"),
    ],
)
def test_a_bad_setting_is_named(data: Path, flags: tuple[str, ...], text: str) -> None:
    said = sentence(refused(data, *flags))
    assert text in said
    assert "hidden" not in said
    assert not data.exists()
