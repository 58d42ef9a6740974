"""A home as stories see it: the API, and time that is skipped instead of waited for."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest

from stepwell_engine.api.app import build
from stepwell_engine.limits import DAY, MAX_PENDING_SIGNALS, SECOND
from stepwell_engine.service.projects.identity import Role
from stepwell_engine.settings.embedded import Settings
from stepwell_engine.wiring.embedded import embedded
from tests.api.events import event
from tests.open_files import open_in

START: Final = 1_790_000_000_000
ENDED: Final = frozenset({"succeeded", "failed", "cancelled", "timed_out"})
BUDGET: Final = 5 * SECOND

JsonObject = dict[str, Any]


class StoryClock:
    """A clock that stands still until a caller sleeps or a story skips time."""

    def __init__(self) -> None:
        self.at = START
        # What happens in the world while a caller sleeps.
        self.meanwhile: Callable[[], None] = lambda: None
        self._sleeping = False

    def now(self) -> int:
        """Milliseconds since the epoch."""
        return self.at

    def sleep(self, ms: int) -> None:
        """Pass some time."""
        self.at += ms
        if not self._sleeping:
            self._sleeping = True
            self.meanwhile()
            self._sleeping = False


@dataclass(frozen=True)
class Answer:
    """What the API answered; `body` is parsed, None if there was none."""

    status: int
    body: Any


class Home(ABC):
    """What a story may use; every home that runs the stories implements the abstract part."""

    clock: StoryClock
    grain: int = 1  # ms by which something may come late
    # ms that may be skipped at once, no longer than a home's tick looks ahead
    stride: int = 5 * SECOND

    @abstractmethod
    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Mapping[str, str] | None = None,
        token: str | None = None,
    ) -> Answer:
        """One request to the API, `path` below the project; from any thread."""

    @abstractmethod
    def drain(self) -> None:
        """Let everything happen that is due by now."""

    @abstractmethod
    def next_due(self) -> int | None:
        """When something is known to be due next."""

    @abstractmethod
    def use_database(self) -> None:
        """Give the project its database."""

    @abstractmethod
    def close(self) -> None:
        """Close everything that was opened."""

    def until(self, done: Callable[[], bool], within: int = DAY) -> None:
        """Skip from one due time to the next until `done`; fails after `within` ms."""
        end = self.clock.at + within
        while True:
            self.drain()
            if done():
                return
            assert self.clock.at < end, "it never happened"
            following = self.next_due()
            later = self.clock.at + self.stride
            self.clock.at = max(
                self.clock.at + 1, later if following is None else min(following, later)
            )

    # --- the API in words ---------------------------------------------------------------------

    def ok(self, method: str, path: str, body: object = None) -> Any:
        """The body of a request that succeeds."""
        answer = self.request(method, path, body)
        assert 200 <= answer.status < 300, answer
        return answer.body

    def publish(self, workflow: str, *steps: JsonObject) -> int:
        """Publish a version; its number."""
        version: int = self.ok("PUT", f"/workflows/{workflow}", {"steps": list(steps)})["version"]
        return version

    def start(self, workflow: str, **body: Any) -> str:
        """Start a run; its id."""
        run_id: str = self.ok("POST", f"/workflows/{workflow}/runs", body)["id"]
        return run_id

    def run(self, workflow: str, run_id: str) -> JsonObject:
        """The run's detail as it stands."""
        run: JsonObject = self.ok("GET", f"/workflows/{workflow}/runs/{run_id}")
        return run

    def step(self, workflow: str, run_id: str, key: str) -> JsonObject:
        """One step of a run."""
        steps = self.run(workflow, run_id)["steps"]
        (step,) = [step for step in steps if step["key"] == key]
        found: JsonObject = step
        return found

    def finish(self, workflow: str, run_id: str) -> JsonObject:
        """The run's detail once it has ended."""
        self.until(lambda: self.run(workflow, run_id)["status"] in ENDED)
        return self.run(workflow, run_id)

    def room_for_signals(self, _: pytest.MonkeyPatch) -> int:
        """How many signals a run keeps here, from now on."""
        return MAX_PENDING_SIGNALS

    def signal_often(self, workflow: str, run_id: str, signal: str, times: int) -> None:
        """Send a signal so many times."""
        for _ in range(times):
            self.ok("POST", f"/workflows/{workflow}/runs/{run_id}/signals", {"signal": signal})

    def messages(self, queue: str) -> list[Any]:
        """The bodies of the messages in a queue, oldest first."""
        return [item["body"] for item in self.ok("GET", f"/queues/{queue}/messages")["items"]]

    def sent_ids(self, queue: str) -> list[int | str]:
        """What the messages in a queue are called, oldest first."""
        return [item["id"] for item in self.ok("GET", f"/queues/{queue}/messages")["items"]]

    def sent_at(self, queue: str) -> list[str]:
        """When the messages in a queue were sent, oldest first."""
        return [item["sent_at"] for item in self.ok("GET", f"/queues/{queue}/messages")["items"]]


class EmbeddedHome(Home):
    """The embedded home on its real adapters, its threads and its timer replaced by the story."""

    def __init__(self, settings: Settings) -> None:
        self.clock = StoryClock()
        self.clock.meanwhile = self.drain
        self._folder = settings.data
        self._home = embedded(settings, self.clock)
        self._handler = build(self._home.engine.services)
        identity = self._home.engine.services.identity
        identity.create_project("local", "demo")
        self._token = identity.mint_session("local", Role.OWNER)

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Mapping[str, str] | None = None,
        token: str | None = None,
    ) -> Answer:
        """One request, as an event of API Gateway."""
        text = None if body is None else json.dumps(body)
        token = self._token if token is None else token
        made = event(method, f"/v1/projects/demo{path}", text, token=token, query=query)
        answer = self._handler(made, None)
        raw = answer.get("body")
        return Answer(answer["statusCode"], json.loads(raw) if raw else None)

    def drain(self) -> None:
        """Tick, then advance every run with a hint that is due."""
        self._home.engine.sweep.tick()
        while (hint := self._home.hints.take_due()) is not None:
            self._home.engine.advance.run(hint.subject.id, hint.subject.project, BUDGET)
            self._home.hints.done(hint.subject)

    def next_due(self) -> int | None:
        """The time of the earliest hint."""
        return self._home.hints.next_at()

    def signal_often(self, workflow: str, run_id: str, signal: str, times: int) -> None:
        """The same as so many requests, without HTTP, which takes most of the time."""
        for _ in range(times):
            self._home.engine.services.controls.signal("demo", workflow, run_id, signal, b"null")

    def use_database(self) -> None:
        """The embedded PostgreSQL."""
        self.ok("PUT", "/database", {})

    def close(self) -> None:
        """Close everything that was opened."""
        self._home.close()
        assert open_in(self._folder) == []
