"""A second process on one SQLite file: `second_process.py PATH open|compete|write NAME`.

It says `ready`, begins when its standard input ends, and prints what it did.
"""

import json
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from stepwell_engine.core.run.head import Blob
from stepwell_engine.ports import Commit, Done
from tests.contract.heads import NOW, UNTIL, a_head, held, put, some_message
from tests.contract.homes import SqliteHome

RUNS = 60
COMMITS = 3
SIGNALS = 50
VERSIONS = 20
MESSAGES = 60
WRITERS = 8
MOST_WRITES = 20_000  # of a process that nobody kills


def only_open(home: SqliteHome, name: str, _: TextIO) -> None:
    """Leave a run that shows that the file could be opened."""
    put(home.runs, a_head(name))


def compete(home: SqliteHome, name: str, out: TextIO) -> None:
    """Claim and move every run that can be had, deliver messages, publish, receive."""
    claimed: list[str] = []
    versions: list[int] = []
    received: list[int | str] = []
    for number in range(RUNS):
        run_id = f"run-{number}"
        if isinstance(home.runs.claim(run_id, name, NOW, UNTIL), Done):
            claimed.append(run_id)
            for commit in range(COMMITS):
                done = home.runs.commit(Commit(run_id, name, commit, name.encode()))
                assert isinstance(done, Done)
        if number < SIGNALS:
            home.runs.deliver("mailbox", f"{name}-{number}", some_message(), NOW, None)
        if number < VERSIONS:
            versions.append(home.versions.publish("shop", "order", b"{}", True, NOW).version)
        received += [one.id for one in home.queues.receive("shop", "orders", 1, NOW)]
    json.dump({"claimed": claimed, "versions": versions, "received": received}, out)


def write(home: SqliteHome, name: str, out: TextIO) -> None:
    """Commit on several threads, and print each commit once it is acknowledged."""
    lock = threading.Lock()

    def work(run_id: str) -> None:
        home.runs.create(held(run_id=run_id, lease_token=name))
        commit = Commit(run_id, name, 0, b"")
        for number in range(MOST_WRITES):
            data = str(number).encode()
            blobs = (Blob(f"{name}/{number}", data),)
            done = home.runs.commit(replace(commit, commit_seq=number, journal=data, blobs=blobs))
            assert isinstance(done, Done)
            with lock:
                out.write(f"{run_id} {number}\n")
                out.flush()

    threads = [threading.Thread(target=work, args=(f"run-{number}",)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    """Do what the command line says."""
    path, task, name = sys.argv[1:]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
    home = SqliteHome(Path(path))
    {"open": only_open, "compete": compete, "write": write}[task](home, name, sys.stdout)
    home.close()


if __name__ == "__main__":
    main()
