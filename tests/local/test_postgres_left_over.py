"""The embedded PostgreSQL of a host that was killed is used again, and stopped with the next."""

import os
import signal
from pathlib import Path
from typing import Any

from tests.local.process import Host, hosting


def select(host: Host, statement: str) -> list[dict[str, Any]]:
    """The rows of a statement."""
    run_id = host.start("look", {"key": "look", "kind": "sql", "target": statement})
    run = host.finish("look", run_id)
    assert run["status"] == "succeeded", run["last_error"]
    rows: list[dict[str, Any]] = run["output"].get("rows", [])
    return rows


STARTED = "select pg_postmaster_start_time()::text as at"


def server_pid(data: Path) -> int:
    (file,) = data.glob("postgres/**/postmaster.pid")
    return int(file.read_text().splitlines()[0])


def test_it_is_adopted_with_its_data_and_stopped_with_the_host(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with hosting(data) as host:
        assert not (data / "postgres").exists()
        host.ok("PUT", "/database", {})
        select(host, "create table orders (id int)")
        select(host, "insert into orders values (7)")
        started = select(host, STARTED)
        pid = server_pid(data)
        host.end(signal.SIGKILL)
    os.kill(pid, 0)
    with hosting(data) as host:
        assert select(host, "select id from orders") == [{"id": 7}]
        assert select(host, STARTED) == started
        assert server_pid(data) == pid
        host.end(signal.SIGKILL)
    # The next host has no step that needs it.
    with hosting(data) as host:
        assert host.end() == 0
    assert list(data.glob("postgres/**/postmaster.pid")) == []
