"""An installation on the emulator: deployed by the commands that people use, driven over HTTP."""

import io
import json
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import requests

from infra.assembly import Target
from infra.cloud import Cloud
from stepwell_engine.adapters.process.system import SystemClock
from stepwell_engine.core.values import subject as subjects
from stepwell_engine.core.values.subject import about_run
from tests.arch.sources import ROOT
from tests.e2e.data_api import CLUSTER, SECRET
from tests.e2e.emulator import ACCOUNT, PATIENCE, REGION, Emulator

NAME: Final = "stepwell-dev"
PROJECT: Final = "shop"
FUNCTIONS: Final = ("api", "executor", "tick")
RESERVE: Final = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:reserve"
ENDED: Final = frozenset({"succeeded", "failed", "cancelled", "timed_out"})
CONTEXT: Final = {
    "@aws-cdk/core:validateAgainstDefaultRules": "false",
    # The functions run in the emulator's venv, which has the packages.
    "requirements": "false",
    "allowed_networks": "127.0.0.0/8",
    "keep_data": "false",
    "deletion_protection": "false",
    "functions": RESERVE,
    "databases": CLUSTER,
    "secrets": SECRET,
}
# The emulator knows no alarms on sums of metrics.
LEFT_OUT: Final = ("--without", "watch")
RESERVES: Final = """
def handler(event, context):
    return {"reserved": event["payload"]["sku"], "key": event["idempotency_key"]}
"""

JsonObject = dict[str, Any]
Policy = Mapping[str, Any]


@dataclass(frozen=True)
class Installation:
    """What was deployed. `token` is the owner's, `host` that of the API."""

    emulator: Emulator
    cloud: Cloud
    host: str
    token: str

    # --- the API ------------------------------------------------------------------------------

    def request(
        self, method: str, path: str, body: object = None, token: str | None = None
    ) -> requests.Response:
        """One request, `path` below the project."""
        return requests.request(
            method,
            f"{self.emulator.url}/v1/projects/{PROJECT}{path}",
            json=body,
            headers={"Host": self.host, "Authorization": f"Bearer {token or self.token}"},
            verify=str(self.emulator.certificate),
            timeout=30,
        )

    def ok(self, method: str, path: str, body: object = None) -> Any:
        """The body of a request that succeeds."""
        answer = self.request(method, path, body)
        assert answer.ok, answer.text
        return answer.json()

    def publish(self, workflow: str, *steps: JsonObject) -> None:
        """Publish a version."""
        self.ok("PUT", f"/workflows/{workflow}", {"steps": list(steps)})

    def start(self, workflow: str, **body: Any) -> str:
        """Start a run; its id."""
        run_id: str = self.ok("POST", f"/workflows/{workflow}/runs", body)["id"]
        return run_id

    def run(self, workflow: str, run_id: str, wait: int = 0) -> JsonObject:
        """The run's detail, when it has ended or after `wait` seconds."""
        run: JsonObject = self.ok("GET", f"/workflows/{workflow}/runs/{run_id}?wait={wait}")
        return run

    def finish(self, workflow: str, run_id: str, tries: int = 6) -> JsonObject:
        """The run's detail once it has ended, `tries` times 20 seconds later at most."""
        for _ in range(tries):
            run = self.run(workflow, run_id, wait=20)
            if run["status"] in ENDED:
                return run
        raise AssertionError(f"{json.dumps(run)}\n{self.everything_said()}")

    def parked(self, workflow: str, run_id: str, cursor: int = 0) -> JsonObject:
        """The run's detail once it waits at a step."""
        for _ in range(300):
            run = self.run(workflow, run_id)
            if (run["status"], run["cursor"]) == ("waiting", cursor):
                return run
            assert run["status"] not in ENDED, json.dumps(run)
            time.sleep(0.2)
        raise AssertionError(f"{json.dumps(run)}\n{self.everything_said()}")

    def signal(self, workflow: str, run_id: str, signal: str, **body: Any) -> requests.Response:
        """Send a signal to a run."""
        path = f"/workflows/{workflow}/runs/{run_id}/signals"
        return self.request("POST", path, {"signal": signal, **body})

    def cancel(self, workflow: str, run_id: str, query: str = "") -> requests.Response:
        """Cancel a run."""
        return self.request("POST", f"/workflows/{workflow}/runs/{run_id}/cancel{query}")

    def runs_of(self, workflow: str) -> list[JsonObject]:
        """The runs of a workflow as the list shows them, oldest first."""
        items: list[JsonObject] = self.ok("GET", f"/workflows/{workflow}/runs")["items"]
        return items[::-1]

    # --- AWS ----------------------------------------------------------------------------------

    def said(self, function: str) -> list[str]:
        """The lines of a function's log."""
        group = self.name("compute", f"Compute{function.capitalize()}Log")
        pages = self.emulator.client("logs").get_paginator("filter_log_events")
        found = pages.paginate(logGroupName=group)
        return [one["message"] for page in found for one in page["events"]]

    def everything_said(self) -> str:
        """The logs of all functions, for a failure's message."""
        return "\n".join(f"{name}: {line}" for name in FUNCTIONS for line in self.said(name))

    def complaints(self, function: str) -> list[str]:
        """The lines of a function's log that nobody should have to read."""
        quiet = ("START RequestId: ", "END RequestId: ", "REPORT RequestId: ", '{"_aws":')
        return [line for line in self.said(function) if not line.startswith(quiet)]

    def metrics(self, function: str) -> Counter[str]:
        """The sums of the metrics in a function's log."""
        found: Counter[str] = Counter()
        for line in self.said(function):
            if line.startswith('{"_aws":'):
                written = json.loads(line)
                (shown,) = written["_aws"]["CloudWatchMetrics"]
                for metric in shown["Metrics"]:
                    found[metric["Name"]] += sum(written[metric["Name"]])
        return found

    def counted(self, function: str, again: Callable[[], None], **least: int) -> Counter[str]:
        """The metrics in a function's log once they come to so much.

        What a function writes on a busy machine may come too late for the emulator, which then
        takes it with the next invocation: `again` is for that.
        """
        for _ in range(100):
            found = self.metrics(function)
            if all(found[name] >= count for name, count in least.items()):
                return found
            again()
        raise AssertionError(f"{found}\n{self.everything_said()}")

    def invocations(self, function: str) -> int:
        """How many invocations of a function have ended."""
        return sum(line.startswith("START RequestId: ") for line in self.said(function))

    def errors(self, function: str) -> float:
        """How many invocations failed, as AWS counts them."""
        now = datetime.fromtimestamp(SystemClock().now() / 1000, UTC)
        answer = self.emulator.client("cloudwatch").get_metric_statistics(
            Namespace="AWS/Lambda",
            MetricName="Errors",
            Dimensions=[{"Name": "FunctionName", "Value": f"{NAME}-{function}"}],
            StartTime=now - timedelta(hours=1),
            EndTime=now + timedelta(hours=1),
            Period=60,
            Statistics=["Sum"],
        )
        return float(sum(point["Sum"] for point in answer["Datapoints"]))

    def schedule_ticks(self, on: bool) -> None:
        """Have a tick every minute, or none; one that was due meanwhile comes soon."""
        scheduler = self.emulator.client("scheduler")
        schedule = scheduler.get_schedule(Name=self.name("compute", "ComputeEveryMinute"))
        kept = ("Name", "ScheduleExpression", "FlexibleTimeWindow", "Target")
        state = "ENABLED" if on else "DISABLED"
        scheduler.update_schedule(**{name: schedule[name] for name in kept}, State=state)

    def invoke_tick(self) -> None:
        """What the schedule does every minute, now."""
        answer = self.emulator.client("lambda").invoke(FunctionName=f"{NAME}-tick", Payload=b"{}")
        assert "FunctionError" not in answer, answer["Payload"].read()

    def hint(self, run_id: str) -> None:
        """Have the executor look at a run."""
        self.emulator.client("sqs").send_message(
            QueueUrl=self.name("compute", "ComputeMessagingHints"),
            MessageBody=subjects.encode(about_run(run_id, PROJECT)),
            MessageGroupId=PROJECT,
        )
        self.drain()

    def drain(self) -> None:
        """Wait until every hint was dealt with: then what the executor said is in its log."""
        ends = time.monotonic() + PATIENCE
        while left := self.messages("Hints"):
            assert time.monotonic() < ends, f"{left} hints\n{self.everything_said()}"
            time.sleep(0.1)

    def messages(self, queue: str) -> int:
        """How many messages are in a queue of the installation, the hidden ones too."""
        url = self.name("compute", f"ComputeMessaging{queue}")
        answer = self.emulator.client("sqs").get_queue_attributes(
            QueueUrl=url, AttributeNames=["All"]
        )
        counts = [
            int(count)
            for name, count in answer["Attributes"].items()
            if name.startswith("ApproximateNumberOfMessages")
        ]
        assert len(counts) == 3
        return sum(counts)

    def name(self, stack: str, part: str) -> str:
        """The physical name of the only resource of a stack whose name begins like this."""
        (found,) = (name for key, name in self._resources[stack].items() if _is(key, part))
        return found

    @cached_property
    def _resources(self) -> Mapping[str, Mapping[str, str]]:
        stacks = ("data", "compute", "api")
        return {stack: self.cloud.resources(f"{NAME}-{stack}") for stack in stacks}

    def allow_batches(self) -> None:
        """Give the tick what it has on AWS already.

        There `sqs:SendMessage` covers SendMessageBatch; the emulator knows an action of that name.
        """
        statement = {"Effect": "Allow", "Action": "sqs:SendMessageBatch", "Resource": "*"}
        self.emulator.client("iam").put_role_policy(
            RoleName=self.name("compute", "ComputeTickRole"),
            PolicyName="batches",
            PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
        )

    @contextmanager
    def without(self, function: str, action: str) -> Iterator[None]:
        """Take one action out of the policy of a function's role, and put it back."""
        iam = self.emulator.client("iam")
        role = self.name("compute", f"Compute{function.capitalize()}Role")
        (policy,) = iam.list_role_policies(RoleName=role)["PolicyNames"]
        document = iam.get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"]
        left, taken = _without(document, action)
        assert taken == 1
        iam.put_role_policy(RoleName=role, PolicyName=policy, PolicyDocument=json.dumps(left))
        try:
            yield
        finally:
            iam.put_role_policy(
                RoleName=role, PolicyName=policy, PolicyDocument=json.dumps(document)
            )


def create_reserve(emulator: Emulator) -> None:
    """Create the user's function."""
    trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}}
    document = {"Version": "2012-10-17", "Statement": [{**trust, "Action": "sts:AssumeRole"}]}
    role = emulator.client("iam").create_role(
        RoleName="reserve", AssumeRolePolicyDocument=json.dumps(document)
    )
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("reserve.py", RESERVES)
    emulator.client("lambda").create_function(
        FunctionName="reserve",
        Runtime="python3.13",
        Role=role["Role"]["Arn"],
        Handler="reserve.handler",
        Timeout=30,
        Code={"ZipFile": code.getvalue()},
    )


def install(emulator: Emulator, folder: Path) -> Installation:
    """Synthesize, deploy, and make the first owner."""
    pairs = [word for name, value in CONTEXT.items() for word in ("-c", f"{name}={value}")]
    _run(emulator, "infra.app", "--output", str(folder), *pairs)
    _run(emulator, "infra.deploy", "up", "--assembly", str(folder), *LEFT_OUT, *_at(emulator))
    cloud = Cloud(
        emulator.client("s3"), emulator.client("cloudformation"), Target(ACCOUNT, REGION), 0.05
    )
    shown = _run(emulator, "infra.owner", "--project", PROJECT, *_at(emulator))
    said = dict(line.split(maxsplit=1) for line in shown.splitlines())
    # The emulator serves an API under a host name of its own.
    api = urlsplit(said["url"]).netloc.split(".")[0]
    host = f"{api}.execute-api.localhost"
    installation = Installation(emulator, cloud, host, said["token"])
    installation.allow_batches()
    return installation


def take_away(emulator: Emulator, folder: Path) -> str:
    """Delete everything; what was said."""
    return _run(
        emulator, "infra.deploy", "down", "--assembly", str(folder), "--data", *_at(emulator)
    )


def _at(emulator: Emulator) -> tuple[str, ...]:
    return ("--region", REGION, "--endpoint", emulator.url)


def _run(emulator: Emulator, module: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env=emulator.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _is(key: str, part: str) -> bool:
    """CDK adds eight digits to a resource's path."""
    return key[:-8] == part


def _without(document: Policy, action: str) -> tuple[Policy, int]:
    """A policy without an action, and in how many statements that was."""
    statements = []
    taken = 0
    for statement in document["Statement"]:
        listed = statement["Action"]
        actions = [listed] if isinstance(listed, str) else listed
        left = [one for one in actions if one != action]
        taken += left != actions
        statements.append({**statement, "Action": left})
    return {**document, "Statement": statements}, taken
