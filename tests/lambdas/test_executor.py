"""The executor: batches of hints, what comes again and what does not, and its end of time."""

import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

from stepwell_engine.adapters.dynamodb.client import connect
from stepwell_engine.adapters.process.counters import Counters
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import Attempt, Outcome
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.errors import Unavailable
from stepwell_engine.lambdas.batch import MARGIN, THREADS, advance_batch
from stepwell_engine.limits import (
    CHILDREN_AT_ONCE,
    CLOCK_MARGIN,
    LEASE,
    MAX_ALONE_LOSSES,
    MINUTE,
    SECOND,
    SUSPECT_LOST_LEASES,
)
from stepwell_engine.service.retry_unavailable import retry_unavailable
from tests.aws.installation import ALONE, HINTS, clients, waiting
from tests.scenarios.aws import AwsHome
from tests.scenarios.homes import StoryClock
from tests.scenarios.receiver import Receiver, Reply, receiving
from tools.moto_home import REGION

STEP = {"key": "say", "kind": "enqueue", "target": "emails"}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[AwsHome]:
    home = AwsHome(tmp_path)
    home.ok("PUT", "/queues/emails", {})
    home.publish("order", STEP)
    yield home
    home.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


class Context:
    """Lambda's, with this much time left."""

    aws_request_id = "request-1"

    def __init__(self, left: int = 900_000) -> None:
        self.left = left

    def get_remaining_time_in_millis(self) -> int:
        return self.left


class FakeHome:
    """A home whose engine does what a test says; several threads may use it."""

    def __init__(self, run: Any) -> None:
        self.clock = StoryClock()
        self.counters = Counters()
        self.engine = self
        self.advance = self
        self.run = run
        self.asked_again: list[tuple[str, int]] = []
        self.redeliveries = self

    def again(self, receipt: str, receives: int, *, alone: bool) -> None:
        assert not alone
        self.asked_again.append((receipt, receives))


def event(*bodies: str) -> dict[str, Any]:
    """An event of SQS; the messages are called 0, 1, …"""
    return {
        "Records": [
            {
                "messageId": str(index),
                "receiptHandle": f"receipt-{index}",
                "body": body,
                "attributes": {"ApproximateReceiveCount": str(index + 1)},
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:eu-central-1:1:hints",
            }
            for index, body in enumerate(bodies)
        ]
    }


def hint(run_id: str) -> str:
    return json.dumps({"r": run_id, "p": "demo"})


def failed(
    home: Any, made: dict[str, Any], left: int = 900_000, threads: int = THREADS
) -> list[str]:
    """The ids of the messages that come again."""
    answer = advance_batch(
        home.engine.advance,
        home.clock,
        home.counters.add,
        home.redeliveries.again,
        "alone",
        made,
        Context(left),
        threads,
    )
    return [one["itemIdentifier"] for one in answer["batchItemFailures"]]


# --- a batch ----------------------------------------------------------------------------------


def test_the_messages_of_a_batch_are_advanced_at_the_same_time() -> None:
    everybody = threading.Barrier(10, timeout=30)
    home = FakeHome(lambda *_, **__: everybody.wait())
    assert failed(home, event(*(hint(f"run-{n}") for n in range(10)))) == []
    assert home.counters.take() == {"HintsTaken": 10}


def test_no_thread_outlives_the_handler() -> None:
    before = set(threading.enumerate())
    failed(FakeHome(lambda *_, **__: None), event(*(hint(f"run-{n}") for n in range(10))))
    assert set(threading.enumerate()) == before


def test_a_message_that_met_an_unanswering_store_comes_again_and_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def run(run_id: str, *_: object, **__: object) -> None:
        if run_id == "run-1":
            raise Unavailable("no answer")

    home = FakeHome(run)
    assert failed(home, event(hint("run-0"), hint("run-1"), hint("run-2"))) == ["1"]
    assert home.asked_again == [("receipt-1", 2)]
    assert home.counters.take() == {"HintsTaken": 3, "StoreUnavailable": 1}
    assert "run run-1: no answer; the hint will come again" in caplog.text


def test_a_batch_that_fails_whole_is_answered_not_raised() -> None:
    def run(*_: object, **__: object) -> None:
        raise Unavailable("no answer")

    assert failed(FakeHome(run), event(hint("run-0"), hint("run-1"))) == ["0", "1"]


@pytest.mark.parametrize("body", ["", "hello", "[]", '{"r":1,"p":"demo"}', '{"r":"run-0"}'])
def test_a_message_that_is_no_hint_is_logged_counted_and_dropped(
    body: str, caplog: pytest.LogCaptureFixture
) -> None:
    advanced: list[str] = []
    home = FakeHome(lambda run_id, *_, **__: advanced.append(run_id))
    assert failed(home, event(body, hint("run-1"))) == []
    assert advanced == ["run-1"]
    assert home.counters.take() == {"HintsRefused": 1, "HintsTaken": 1}
    assert "a message was dropped: " in caplog.text


def test_a_hint_that_the_engine_fails_on_is_not_delivered_for_days(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def run(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    home = FakeHome(run)
    assert failed(home, event(hint("run-0"))) == []
    assert home.counters.take() == {"HintsTaken": 1, "RunsFailed": 1}
    assert "run run-0: advancing failed" in caplog.text


def test_a_hint_for_a_run_that_is_gone_is_done(home: AwsHome) -> None:
    assert failed(home.home, event(hint("0190c3a4-1f7e-7000-8000-000000000001"))) == []


# --- the end of its time ----------------------------------------------------------------------


def test_what_is_left_of_the_invocation_is_the_budget_and_it_is_hard() -> None:
    given: list[tuple[int, bool, Lane]] = []
    home = FakeHome(lambda _, __, budget, hard, lane: given.append((budget, hard, lane)))
    failed(home, event(hint("run-0")), left=MARGIN + 5_000)
    assert given == [(5_000, True, Lane.SHARED)]


def test_what_comes_from_the_queue_of_suspects_comes_alone() -> None:
    given: list[Lane] = []
    home = FakeHome(lambda *_, lane, **__: given.append(lane))
    made = event(hint("run-0"))
    made["Records"][0]["eventSourceARN"] = "arn:aws:sqs:eu-central-1:1:alone"
    assert failed(home, made) == []
    assert given == [Lane.ALONE]


def test_without_time_left_a_message_comes_again_untouched() -> None:
    home = FakeHome(None)
    assert failed(home, event(hint("run-0")), left=MARGIN) == ["0"]
    assert home.counters.take() == {}


def test_an_attempt_that_could_outlast_the_executor_is_left_to_the_next_one(
    home: AwsHome, receiver: Receiver
) -> None:
    slow = {"key": "pay", "kind": "webhook", "target": receiver.url, "timeout_seconds": 600}
    home.publish("order", STEP, slow)
    run_id = home.start("order")
    (message,) = home._receive()
    assert home.execute([message], life=600_000 + MARGIN - 1) == []
    run = home.run("order", run_id)
    assert (run["status"], run["cursor"], receiver.calls) == ("pending", 1, [])
    (message,) = home._receive()
    assert home.execute([message], life=600_000 + MARGIN) == []
    assert home.run("order", run_id)["status"] == "succeeded"


def test_an_outcome_of_the_last_moment_is_tried_to_be_recorded_as_often_as_any() -> None:
    home = FakeHome(None)
    ends = home.clock.at + 900_000

    def silent() -> None:
        home.clock.at += SECOND * connect(REGION).meta.config.read_timeout
        raise Unavailable("no answer")

    def run(_: str, __: str, budget: int, hard: bool, **___: object) -> None:
        home.clock.at += budget  # an attempt takes all the time that there is
        retry_unavailable(home.clock, silent)

    home.run = run
    assert failed(home, event(hint("run-0")), left=900_000) == ["0"]
    assert home.clock.at <= ends


def test_a_new_executor_has_time_for_the_longest_act() -> None:
    assert 900_000 - MARGIN > 600_000 + 2 * MARGIN


class Killed(BaseException):
    """Lambda ends the process."""


def test_a_run_whose_executor_was_killed_in_a_step_is_brought_back_by_the_tick(
    home: AwsHome, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.publish("order", {"key": "pay", "kind": "webhook", "target": receiver.url}, STEP)
    run_id = home.start("order")
    runners: Any = home.home.engine.advance._tools.runners
    webhook = runners[Kind.WEBHOOK]

    class Dying:
        def run(self, attempt: Attempt) -> Outcome:
            webhook.run(attempt)
            raise Killed

    (message,) = home._receive()
    monkeypatch.setitem(runners, Kind.WEBHOOK, Dying())
    with pytest.raises(Killed):
        home.execute([message])
    monkeypatch.undo()
    waiting(HINTS).clear()  # the hint with it, and any other
    left = home.run("order", run_id)
    assert (left["status"], len(receiver.calls)) == ("running", 1)
    began = home.clock.at
    run = home.finish("order", run_id)
    assert run["status"] == "succeeded"
    assert home.clock.at - began <= LEASE + MINUTE
    assert [step["attempt"] for step in run["steps"]] == [1, 1]
    assert [call.headers["webhook-id"] for call in receiver.calls] == [f"{run_id}:pay"] * 2


# --- time -------------------------------------------------------------------------------------


@pytest.mark.parametrize("off", [-1_000, 1_000])
def test_a_clock_that_is_a_second_off_ends_a_sleep_once_and_not_early(
    home: AwsHome, off: int
) -> None:
    home.publish("nap", {"key": "nap", "kind": "sleep", "sleep_for": "10s"}, STEP)
    run_id = home.start("nap")
    home.drain()
    due = home.clock.at + 10_000
    home.clock.at = due + off  # SQS delivers at `due`, the executor thinks it is another time
    for one in waiting(HINTS):
        one.delayed_until = 0
    home.execute(home._receive())
    run = home.run("nap", run_id)
    assert run["status"] == "succeeded"
    assert home.clock.at == max(due, due + off)
    assert len(home.messages("emails")) == 1


def test_a_doubled_hint_does_nothing_twice(home: AwsHome) -> None:
    run_id = home.start("order")
    made = event(hint(run_id), hint(run_id), hint(run_id))
    assert failed(home.home, made, threads=1) == []
    assert len(home.messages("emails")) == 1


@pytest.mark.parametrize("service", ["dynamodb", "sqs"])
def test_a_batch_of_fanouts_has_a_connection_for_everything_that_goes_on_at_once(
    service: str,
) -> None:
    client = connect(REGION) if service == "dynamodb" else clients().get(service, attempts=1)
    assert client.meta.config.max_pool_connections >= THREADS * (1 + CHILDREN_AT_ONCE)


def test_attempts_are_counted(home: AwsHome, receiver: Receiver) -> None:
    receiver.script(Reply(500), Reply(200))
    home.publish("order", {"key": "pay", "kind": "webhook", "target": receiver.url}, STEP)
    home.home.counters.take()
    home.finish("order", home.start("order"))
    counts = home.home.counters.take()
    assert (counts["StepsFailed"], counts["StepsSucceeded"]) == (1, 2)


def test_runs_in_threads_do_not_mix_up_their_ids_in_the_log() -> None:
    everybody = threading.Barrier(5, timeout=30)
    lines: list[dict[str, Any]] = []
    formatter = LambdaPowertoolsFormatter()

    def run(run_id: str, *_: object, **__: object) -> None:
        everybody.wait()
        record = logging.makeLogRecord({"msg": f"run {run_id}", "levelname": "INFO"})
        lines.append(json.loads(formatter.format(record)))

    failed(FakeHome(run), event(*(hint(f"run-{n}") for n in range(5))))
    assert {line["message"] for line in lines} == {f"run run-{n}" for n in range(5)}
    assert all(line["message"] == f"run {line['run_id']}" for line in lines)
    assert {line["project"] for line in lines} == {"demo"}


# --- suspects ---------------------------------------------------------------------------------


def test_what_ends_its_sandbox_fails_alone_and_an_innocent_run_goes_on(
    home: AwsHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.ok("PUT", "/queues/emails", {})
    home.publish("order", {"key": "mail", "kind": "enqueue", "target": "emails", "payload": {}})
    guilty, innocent = home.start("order"), home.start("order")
    runner = home.home.engine.advance._tools.runners[Kind.ENQUEUE]
    run, deaths = runner.run, 0

    def poisonous(attempt: Attempt) -> Outcome:
        nonlocal deaths
        if attempt.run_id == guilty:
            deaths += 1
            raise Killed
        return run(attempt)

    monkeypatch.setattr(runner, "run", poisonous)
    for _ in range(60):
        try:
            home.drain()
        except Killed:
            home.clock.at += LEASE + CLOCK_MARGIN + 1
        if home.run("order", guilty)["status"] == "failed":
            break
    detail = home.run("order", guilty)
    assert (detail["status"], detail["steps"][0]["code"]) == ("failed", "worker_lost")
    assert deaths == SUSPECT_LOST_LEASES + MAX_ALONE_LOSSES
    home.drain()
    assert home.run("order", innocent)["status"] == "succeeded"


def test_the_hint_of_a_suspect_is_sent_on_and_its_run_left_as_it_is(home: AwsHome) -> None:
    waiting(ALONE).clear()
    run_id, runs = home.start("order"), home.home.engine.advance._runs
    for number in range(1 + SUSPECT_LOST_LEASES):
        runs.claim(run_id, f"token-{number}", home.clock.at, home.clock.at)
        home.clock.at += CLOCK_MARGIN + 1
    before = runs.get(run_id)
    assert failed(home.home, event(hint(run_id))) == []
    assert runs.get(run_id) == before
    assert home.messages("emails") == []
    (sent,) = waiting(ALONE)
    assert json.loads(sent.body) == json.loads(hint(run_id))
