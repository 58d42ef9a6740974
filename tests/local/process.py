"""A host as a real process."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import requests

from local.credentials import Credentials

ROOT: Final = Path(__file__).parents[2]
FUNCTIONS: Final = Path(__file__).parent / "functions"


class Ended(Exception):
    """The process ended instead of starting; `code` and what it said to stderr."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(f"exit code {code}: {said}")
        self.code = code
        self.said = said


class Host:
    """`python -m local up` on a free port, in a data folder."""

    def __init__(
        self,
        data: Path,
        *flags: str,
        log: Path | None = None,
        files: int | None = None,
        before: str = "",
    ) -> None:
        """`log`: where its stderr goes, beside the folder if None. `files`: it may open so many.

        `before` is a statement that the process runs before anything else.
        """
        self._log = log or data.with_name(f"{data.name}.log")
        program = ["-m", "local"]
        if before:
            code = f"import sys; {before}; from local.__main__ import main; sys.exit(main())"
            program = ["-c", code]
        command = [sys.executable, *program, "up", "--port", "0", "--data", str(data)]
        command += ["--functions", str(FUNCTIONS), *flags]
        if files is not None:
            command = ["sh", "-c", f'ulimit -n {files}; exec "$0" "$@"', *command]
        with self._log.open("ab") as stderr:
            self.process = subprocess.Popen(
                command, cwd=ROOT, stdout=subprocess.PIPE, stderr=stderr, text=True
            )
        assert self.process.stdout is not None
        with self.process.stdout as stdout:
            # It says three lines once it answers, and nothing if it ends before.
            lines = [stdout.readline() for _ in range(3)]
        if not all(lines):
            raise Ended(self.process.wait(), self.said())
        self.credentials = Credentials(*(line.split()[1] for line in lines))

    def said(self) -> str:
        """All that the hosts of this folder have logged."""
        return self._log.read_text()

    def wait_until_said(self, text: str) -> None:
        """Wait until the log contains a text."""
        while text not in self.said():
            assert self.process.poll() is None, self.said()
            time.sleep(0.01)

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; the exit code."""
        self.process.send_signal(how)
        return self.process.wait()

    def request(self, method: str, path: str, body: object = None) -> requests.Response:
        """A request to the project, `path` below it."""
        return requests.request(
            method,
            f"{self.credentials.url}/v1/projects/{self.credentials.project}{path}",
            headers={
                "authorization": f"Bearer {self.credentials.token}",
                "content-type": "application/json",
            },
            data=None if body is None else json.dumps(body),
            timeout=60,
        )

    def ok(self, method: str, path: str, body: object = None) -> Any:
        """The body of a request that succeeds."""
        answer = self.request(method, path, body)
        assert answer.ok, answer.text
        return answer.json() if answer.content else None

    def start(self, workflow: str, *steps: dict[str, Any]) -> str:
        """Publish these steps and start a run; its id."""
        self.ok("PUT", f"/workflows/{workflow}", {"steps": list(steps)})
        run_id: str = self.ok("POST", f"/workflows/{workflow}/runs", {})["id"]
        return run_id

    def finish(self, workflow: str, run_id: str) -> dict[str, Any]:
        """The run's detail once it has ended; far less than a lease is waited for that."""
        run: dict[str, Any] = self.ok("GET", f"/workflows/{workflow}/runs/{run_id}?wait=25")
        assert run["finished_at"] is not None, run
        return run


@contextmanager
def hosting(data: Path, *flags: str, files: int | None = None, before: str = "") -> Iterator[Host]:
    """A host that is stopped at the end if it still runs."""
    host = Host(data, *flags, files=files, before=before)
    try:
        yield host
    finally:
        if host.process.poll() is None:
            host.end()


def refused(data: Path, *flags: str, log: Path | None = None) -> Ended:
    """A host that does not start."""
    try:
        host = Host(data, *flags, log=log)
    except Ended as ended:
        return ended
    host.end()
    raise AssertionError("the host has started")
