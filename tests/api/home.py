"""The API over adapters in memory, with time that a test moves and steps whose ends it writes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepwell_engine.adapters.memory.grants import MemoryGrants
from stepwell_engine.adapters.memory.hints import MemoryDispatcher
from stepwell_engine.adapters.memory.projects import MemoryProjects
from stepwell_engine.adapters.memory.queues import MemoryQueues
from stepwell_engine.adapters.memory.resources import MemoryResources
from stepwell_engine.adapters.memory.runs import MemoryRuns
from stepwell_engine.adapters.memory.versions import MemoryVersions
from stepwell_engine.api.app import build
from stepwell_engine.api.services import Services
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import Attempt, Outcome, Succeeded
from stepwell_engine.ports import StepRunner
from stepwell_engine.service.projects.definitions import Workflows
from stepwell_engine.service.projects.identity import Identity, Role
from stepwell_engine.service.projects.queue_messages import QueueMessages
from stepwell_engine.service.projects.resources import (
    DATABASE_KINDS,
    FUNCTION_KINDS,
    ResourceRegistry,
)
from stepwell_engine.service.runs.controls import Controls
from stepwell_engine.service.runs.queries import Queries
from stepwell_engine.service.runs.starts import Starts
from stepwell_engine.service.worker.advance import Advance
from stepwell_engine.service.worker.process import WorkerProcess
from tests.api.events import event, text
from tests.api.shapes import differences
from tests.service.world import InlineTaskGroups, ManualClock

PROJECT = "/v1/projects/demo"
RUNS = "/workflows/orders/runs"
NAP = {"key": "nap", "kind": "sleep", "sleep_for": "1h"}
SQL = {"key": "charge", "kind": "sql", "target": "update accounts set active = true"}


class OrderedIds:
    """Run ids that sort by creation, tokens of 12 characters."""

    def __init__(self) -> None:
        self._made = 0

    def run_id(self) -> str:
        self._made += 1
        return f"00000000-0000-7000-8000-{self._made:012}"

    def token(self) -> str:
        self._made += 1
        return f"token{self._made:07}"


class MarkedSecrets:
    """Seals by marking, so that a test sees where a secret went."""

    def seal(self, plain: str, project: str) -> str:
        return f"sealed({project}):{plain[::-1]}"

    def open(self, sealed: str, project: str, within: int | None = None) -> str:
        return sealed.removeprefix(f"sealed({project}):")[::-1]


@dataclass(frozen=True)
class Answer:
    """What came back; `body` is parsed, None for no body."""

    status: int
    body: Any
    headers: Mapping[str, str]
    text: str


class Home:
    """One organization `org` with a project `demo`, and all that serves it."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        ids = OrderedIds()
        self.runs = MemoryRuns()
        self.projects = MemoryProjects()
        self.grants = MemoryGrants()
        self.versions = MemoryVersions()
        self.resources = MemoryResources()
        self.queues = MemoryQueues()
        self.hints = MemoryDispatcher(self.clock)
        self.outcomes: list[Outcome] = []
        self.attempts: list[Attempt] = []
        secrets = MarkedSecrets()
        workflows = Workflows(self.versions, secrets, self.clock)
        self.process = WorkerProcess()
        self.services = Services(
            workflows=workflows,
            starts=Starts(self.runs, workflows, self.hints, self.clock, ids),
            controls=Controls(self.runs, workflows, self.hints, self.clock, ids),
            queries=Queries(self.runs, workflows, self.clock, self.process.refusals),
            resources=ResourceRegistry(
                self.resources,
                self.queues,
                secrets,
                self.clock,
                frozenset(FUNCTION_KINDS),
                frozenset(DATABASE_KINDS),
            ),
            messages=QueueMessages(self.queues, self.clock),
            identity=Identity(self.projects, self.grants, self.clock, ids),
            refusals=self.process.refusals,
        )
        runners: dict[str, StepRunner] = dict.fromkeys(Kind, self)
        self.advance = Advance(
            self.runs,
            workflows,
            runners,
            InlineTaskGroups(),
            self.hints,
            self.clock,
            ids,
            self.process,
        )
        identity = self.services.identity
        identity.create_project("org", "demo")
        self.tokens = {role: identity.mint_session("org", role) for role in Role}
        self.handler = build(self.services)

    def run(self, attempt: Attempt) -> Outcome:
        """Every step's runner: the outcomes a test wrote, then `{"done": true}`."""
        self.attempts.append(attempt)
        return self.outcomes.pop(0) if self.outcomes else Succeeded(b'{"done":true}')

    def send(self, request: dict[str, Any]) -> Answer:
        """Hand an event to the handler; the answer is checked against the OpenAPI document."""
        answer = self.handler(request, None)
        headers = {name.lower(): value for name, value in answer["headers"].items()}
        raw = answer["body"]
        assert isinstance(raw, str)  # API Gateway's format knows no other body
        body = json.loads(raw) if raw else None
        http = request["requestContext"]["http"]
        kind = headers.get("content-type", "")
        assert differences(http["method"], http["path"], answer["statusCode"], kind, body) == []
        return Answer(answer["statusCode"], body, headers, raw)

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Mapping[str, str] | None = None,
        role: Role = Role.OWNER,
        project: str = PROJECT,
    ) -> Answer:
        """Call a route of a project with a JSON body, as a member of its organization."""
        written = None if body is None else text(body)
        return self.send(
            event(method, project + path, written, token=self.tokens[role], query=query)
        )

    def publish(self, name: str = "orders", *steps: Mapping[str, Any]) -> None:
        """Publish a version, of one sql step unless others are given."""
        answer = self.call("PUT", f"/workflows/{name}", {"steps": steps or [SQL]})
        assert answer.status == 201, answer.text

    def start(self, name: str = "orders", **body: Any) -> str:
        """Start a run; its id."""
        answer = self.call("POST", f"/workflows/{name}/runs", body)
        assert answer.status in (200, 201), answer.text
        run_id: str = answer.body["id"]
        return run_id

    def turn(self, run_id: str) -> None:
        """Advance a run as far as it goes now."""
        self.advance.run(run_id, "demo", 60_000)

    def show(self, run_id: str, name: str = "orders", **query: str) -> Any:
        """A run's detail."""
        answer = self.call("GET", f"/workflows/{name}/runs/{run_id}", query=query)
        assert answer.status == 200, answer.text
        return answer.body


def sql(key: str, **fields: Any) -> dict[str, Any]:
    """A step with a side effect."""
    return {**SQL, "key": key, **fields}


def refused(answer: Answer, code: str) -> str:
    """The detail of a problem document, its form checked."""
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.body
    assert document["code"] == code, answer.text
    assert document["status"] == answer.status
    assert document["type"] == f"urn:stepwell:problem:{code}"
    assert document["title"]
    detail: str = document["detail"]
    return detail
