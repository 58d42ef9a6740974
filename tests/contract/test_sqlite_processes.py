"""Real processes on one SQLite file: they compete, and one is killed while it writes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.contract.heads import NOW, a_head, put
from tests.contract.homes import SqliteHome
from tests.contract.inboxes import pending
from tests.contract.second_process import COMMITS, MESSAGES, RUNS, SIGNALS, VERSIONS, WRITERS

ROOT = Path(__file__).parents[2]


@contextmanager
def worker(path: Path, task: str, name: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is ready to begin, and over at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.contract.second_process", str(path), task, name],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def begin(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.close()


def finish(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    output = process.stdout.read()
    assert process.wait() == 0
    return output


def test_two_processes_share_one_file(path: Path) -> None:
    home = SqliteHome(path)
    home.queues.create("shop", "orders", 30_000, 3)
    put(home.runs, a_head("mailbox"))
    for number in range(RUNS):
        put(home.runs, a_head(f"run-{number}"))
        home.queues.send("shop", "orders", b"x", NOW)
    with worker(path, "compete", "one") as one, worker(path, "compete", "two") as two:
        begin(one)
        begin(two)
        reports = {name: json.loads(finish(p)) for name, p in (("one", one), ("two", two))}

    assert RUNS == MESSAGES
    claimed = [run_id for report in reports.values() for run_id in report["claimed"]]
    assert sorted(claimed) == sorted(f"run-{number}" for number in range(RUNS))
    for name, report in reports.items():
        for run_id in report["claimed"]:
            head = home.runs.get(run_id)
            assert head is not None
            assert (head.lease_token, head.commit_seq, head.journal) == (
                name,
                COMMITS,
                name.encode(),
            )
    inbox = home.runs.get("mailbox")
    assert inbox is not None
    assert inbox.inbox_seq == 2 * SIGNALS
    sent = {f"{name}-{number}" for name in reports for number in range(SIGNALS)}
    assert set(pending(home.runs, inbox)) == sent
    versions = [version for report in reports.values() for version in report["versions"]]
    assert sorted(versions) == list(range(1, 2 * VERSIONS + 1))
    received = [number for report in reports.values() for number in report["received"]]
    assert sorted(received) == list(range(1, MESSAGES + 1))
    home.close()


def test_processes_may_create_the_file_at_once(path: Path) -> None:
    names = ("one", "two", "three")
    with ExitStack() as stack:
        processes = [stack.enter_context(worker(path, "open", name)) for name in names]
        for process in processes:
            begin(process)
        for process in processes:
            finish(process)
    home = SqliteHome(path)
    for name in names:
        assert home.runs.get(name) == a_head(name)
    home.close()


def test_a_killed_process_leaves_every_acknowledged_commit(path: Path) -> None:
    acknowledged: dict[str, int] = {}
    with worker(path, "write", "killed") as process:
        begin(process)
        assert process.stdout
        for count, line in enumerate(process.stdout):
            run_id, number = line.split()
            acknowledged[run_id] = int(number)
            if count == 400:
                process.kill()  # what it had printed by then is read to the end
    assert process.returncode == -9
    assert len(acknowledged) == WRITERS

    home = SqliteHome(path)
    check = "PRAGMA integrity_check"
    assert home.database.read(lambda c: c.execute(check).fetchone()) == ("ok",)
    for run_id, last_seen in acknowledged.items():
        head = home.runs.get(run_id)
        assert head is not None
        assert last_seen < head.commit_seq
        last = (
            head.commit_seq - 1
        )  # maybe one more, written but not acknowledged: whole or not at all
        assert last <= last_seen + 1
        assert head.journal == str(last).encode()
        assert home.runs.blob(run_id, f"killed/{last}") == head.journal
        assert home.runs.blob(run_id, f"killed/{last + 1}") is None
    assert home.runs.recover(NOW) == WRITERS
    home.close()
