"""The home on AWS as stories see it: the functions' handlers over moto, time skipped by the clock.

The executor advances one run at a time: what happens in a story has one order.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final

import pytest

from stepwell_engine.adapters.postgres.local import LocalPostgres
from stepwell_engine.api.app import build
from stepwell_engine.core.values.times import iso
from stepwell_engine.lambdas.batch import advance_batch
from stepwell_engine.lambdas.tick import send_due_hints
from stepwell_engine.limits import DAY, MINUTE, SECOND
from stepwell_engine.service.projects.identity import Role
from stepwell_engine.wiring.aws import CAPABILITIES, aws
from tests.api.events import event
from tests.aws.installation import ALONE, HINTS, PREFIX, clients, endpoint, installed, waiting
from tests.aws.small_inboxes import small_inboxes
from tests.e2e.data_api import DATABASE, serving
from tests.scenarios.homes import Answer, Home, StoryClock
from tools.moto_home import RUNS, table

RETENTION: Final = DAY  # of hints
LIFE: Final = 900_000  # ms that an executor has
LOOPBACK: Final = (ip_network("127.0.0.0/8"),)


class Context:
    """The context that Lambda gives to a handler."""

    aws_request_id = "request-1"
    invoked_function_arn = "arn:aws:lambda:eu-west-1:123456789012:function:stepwell-test-tick"

    def __init__(self, clock: StoryClock, life: int = LIFE) -> None:
        self._clock = clock
        self._ends = clock.now() + life

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the function is ended."""
        return self._ends - self._clock.now()


class AwsHome(Home):
    """The functions `api`, `executor` and `tick`, fed by the story instead of by AWS."""

    grain = SECOND  # SQS delays by whole seconds
    stride = DAY  # the table tells what is due

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.clock = StoryClock()
        self.clock.meanwhile = self.drain
        self._opened = ExitStack()
        self.settings = self._opened.enter_context(installed(self.clock, *LOOPBACK))
        self.home = aws(self.settings, self.clock, clients())
        self._handler = build(self.home.engine.services)
        identity = self.home.engine.services.identity
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
        answer = self._handler(made, Context(self.clock))
        raw = answer.get("body")
        return Answer(answer["statusCode"], json.loads(raw) if raw else None)

    def drain(self) -> None:
        """A tick, then the executor for every message that is due."""
        self.tick()
        while messages := self._receive():
            self.execute(messages)

    def tick(self) -> None:
        """What the scheduler does every minute."""
        home = self.home
        send_due_hints(
            home.engine.sweep,
            home.ticks,
            home.flush,
            home.invoke_later,
            home.counters.add,
            {},
            Context(self.clock),
        )

    def execute(self, messages: list[Any], life: int = LIFE) -> list[str]:
        """Hand messages to the executor as Lambda does; the ids of those that failed."""
        records = [
            {
                "messageId": one["MessageId"],
                "receiptHandle": one["ReceiptHandle"],
                "body": one["Body"],
                "attributes": {"ApproximateReceiveCount": "1"},
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": f"arn:aws:sqs:eu-central-1:1:{one.get('Queue', HINTS)}",
            }
            for one in messages
        ]
        home = self.home
        answer = advance_batch(
            home.engine.advance,
            self.clock,
            home.counters.add,
            home.redeliveries.again,
            home.alone_queue,
            {"Records": records},
            Context(self.clock, life),
            threads=1,
        )
        failed = [one["itemIdentifier"] for one in answer["batchItemFailures"]]
        for one in messages:
            if one["MessageId"] not in failed:
                self._sqs.delete_message(
                    QueueUrl=self._url(one.get("Queue", HINTS)), ReceiptHandle=one["ReceiptHandle"]
                )
        return failed

    def next_due(self) -> int | None:
        """When the next message comes, or the next tick that has something to do."""
        return min((at for at in self._times() if at > self.clock.at), default=None)

    def room_for_signals(self, patch: pytest.MonkeyPatch) -> int:
        """A few: a thousand take moto minutes."""
        return small_inboxes(patch)

    def messages(self, queue: str) -> list[Any]:
        """The bodies of the messages in a queue, as moto has them: SQS lists none."""
        return [json.loads(one.body) for one in waiting(f"{PREFIX}demo-{queue}")]

    def sent_at(self, queue: str) -> list[str]:
        """When the messages in a queue were sent."""
        return [iso(one.sent_timestamp) for one in waiting(f"{PREFIX}demo-{queue}")]

    def sent_ids(self, queue: str) -> list[int | str]:
        """The ids of the messages in a queue."""
        return [one.id for one in waiting(f"{PREFIX}demo-{queue}")]

    def use_database(self) -> None:
        """A cluster behind the RDS Data API."""
        postgres = LocalPostgres(self._folder / "postgres")
        self._opened.callback(postgres.stop)
        api = self._opened.enter_context(serving(postgres.dsn("demo")))
        self._opened.enter_context(endpoint("rds-data", api.url))
        self.ok("PUT", "/database", DATABASE)

    def close(self) -> None:
        """Leave moto as it was."""
        self.home.close()
        self._opened.close()

    def _times(self) -> Iterator[int]:
        for one in (*waiting(HINTS), *waiting(ALONE)):
            yield int(max(one.delayed_until, one.visible_at))
        for items in table(RUNS).items.values():
            for item in items.values() if isinstance(items, dict) else [items]:
                wake_at = item.attrs.get("w")
                if wake_at is not None:
                    seen_at = int(wake_at.value) - CAPABILITIES.look_ahead
                    # What a tick has seen, the next one sees again.
                    yield seen_at if seen_at > self.clock.at else self.clock.at + MINUTE

    def _receive(self) -> list[Any]:
        """Up to ten hints, or one of the lane ALONE."""
        return self._receive_from(HINTS, 10) or self._receive_from(ALONE, 1)

    def _receive_from(self, queue: str, most: int) -> list[Any]:
        # moto stops at a message past its retention, where SQS has none.
        old = self.clock.at - RETENTION
        held = waiting(queue)
        held[:] = [one for one in held if one.sent_timestamp > old]
        answer = self._sqs.receive_message(QueueUrl=self._url(queue), MaxNumberOfMessages=most)
        return [{**one, "Queue": queue} for one in answer.get("Messages", [])]

    def _url(self, queue: str) -> str:
        settings = self.settings
        return settings.alone_queue_url if queue == ALONE else settings.hints_queue_url

    @property
    def _sqs(self) -> Any:
        return clients().get("sqs", attempts=1)
