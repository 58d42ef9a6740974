"""A client of Stepwell's HTTP API, with nothing but the standard library."""

import http.client
import json
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

TIMEOUT = 40  # seconds; the API itself answers within 25


@dataclass(frozen=True, slots=True)
class Access:
    """What the host writes to credentials.json."""

    url: str
    project: str
    token: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and JSON body of an answer; no body is None."""

    status: int
    body: Any


class Refused(Exception):
    """The API answered with a problem document."""

    def __init__(self, method: str, path: str, answer: Answer) -> None:
        super().__init__(f"{method} {path} answered {answer.status}: {json.dumps(answer.body)}")
        self.answer = answer


class Api:
    """The routes of one project. Any number of threads may share one.

    Calls raise Refused for a 4xx or 5xx, and OSError or http.client.HTTPException when there is
    no answer: the call may then have happened.
    """

    def __init__(self, access: Access) -> None:
        parts = urlsplit(access.url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._base = f"{parts.path.rstrip('/')}/v1/projects/{quote(access.project)}"
        self._token = access.token

    def publish(self, workflow: str, definition: Any) -> int:
        """Publish a version of a workflow; its number."""
        version: int = self.call("PUT", f"/workflows/{workflow}", definition).body["version"]
        return version

    def start(self, workflow: str, key: str | None = None, payload: Any = None) -> Answer:
        """Start a run: 201, or 200 with the run that this idempotency key has started before."""
        body = {"input": payload or {}} | ({"idempotency_key": key} if key else {})
        return self.call("POST", f"/workflows/{workflow}/runs", body)

    def run(self, workflow: str, run_id: str, wait: int = 0) -> Any:
        """A run's detail, after at most `wait` seconds (up to 25), or once it has ended."""
        return self.call("GET", f"/workflows/{workflow}/runs/{run_id}?wait={wait}").body

    def every(self, path: str) -> list[Any]:
        """All items of a list, page by page."""
        found: list[Any] = []
        cursor = ""
        while True:
            page = self.call("GET", f"{path}?limit=100{cursor}").body
            found += page["items"]
            if page["next_cursor"] is None:
                return found
            cursor = f"&cursor={quote(page['next_cursor'])}"

    def call(self, method: str, path: str, body: Any = None) -> Answer:
        """One request below the project's address."""
        headers = {"Authorization": f"Bearer {self._token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        sent = None if body is None else json.dumps(body).encode()
        with self._connected() as line:
            line.request(method, self._base + path, sent, headers)
            response = line.getresponse()
            text = response.read()
        answer = Answer(response.status, json.loads(text) if text else None)
        if answer.status >= 400:  # noqa: PLR2004  the HTTP classes of errors
            raise Refused(method, path, answer)
        return answer

    def _connected(self) -> AbstractContextManager[http.client.HTTPConnection]:
        """A connection for each call: none is ever found dead after the engine was killed."""
        return closing(self._connection())

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT)
