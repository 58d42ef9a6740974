"""The executor on a DynamoDB that throttles, meets conflicts, finds no room, or is silent."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import (  # type: ignore[import-untyped]
    ClientError,
    ReadTimeoutError,
)

from stepwell_engine.limits import CLOCK_MARGIN, LEASE
from tests.aws.installation import HINTS, waiting
from tests.scenarios.aws import AwsHome

STEP = {"key": "say", "kind": "enqueue", "target": "emails"}
LOST = "lost"
SILENCE = ReadTimeoutError(endpoint_url="https://dynamodb")
TOO_LARGE = "Item size to update has exceeded the maximum allowed size"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[AwsHome]:
    home = AwsHome(tmp_path)
    home.ok("PUT", "/queues/emails", {})
    home.publish("order", STEP)
    yield home
    home.close()


class Database:
    """DynamoDB's client. What is in `script` of an operation happens to its calls, one after the
    other: None nothing, an error instead of the call, LOST no answer although it was done.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self.script: dict[str, list[Any]] = {}

    def __getattr__(self, name: str) -> Any:
        operation: Callable[..., Any] = getattr(self._client, name)

        def call(**arguments: Any) -> Any:
            script = self.script.get(name)
            error = script.pop(0) if script else None
            if error is not None and error is not LOST:
                raise error
            answer = operation(**arguments)
            if error is LOST:
                raise SILENCE
            return answer

        call.__name__ = name
        return call


@pytest.fixture
def database(home: AwsHome, monkeypatch: pytest.MonkeyPatch) -> Database:
    runs: Any = home.home.engine.advance._runs
    made = Database(runs._database._client)
    monkeypatch.setattr(runs._database, "_client", made)
    return made


def refusal(code: str, message: str = "no") -> ClientError:
    error: Any = {"Error": {"Code": code, "Message": message}}
    return ClientError({**error, "ResponseMetadata": {"HTTPStatusCode": 400}}, "UpdateItem")


def execute(home: AwsHome) -> list[str]:
    """What the executor answers to all messages that are due: those that come again."""
    return home.execute(home._receive())


@pytest.mark.parametrize(
    "code", ["TransactionConflictException", "ProvisionedThroughputExceededException"]
)
def test_a_conflict_or_throttling_that_passes_is_waited_for(
    home: AwsHome, database: Database, code: str
) -> None:
    run_id = home.start("order")
    database.script["update_item"] = [refusal(code) for _ in range(3)]
    assert execute(home) == []
    assert home.run("order", run_id)["status"] == "succeeded"
    assert len(home.messages("emails")) == 1


def test_throttling_that_lasts_has_the_message_come_again(
    home: AwsHome, database: Database
) -> None:
    run_id = home.start("order")
    home.clock.meanwhile = lambda: None  # no tick while the executor waits
    database.script["update_item"] = [refusal("ThrottlingException") for _ in range(1_000)]
    (message,) = home._receive()
    assert home.execute([message]) == [message["MessageId"]]
    assert home.home.counters.take()["StoreUnavailable"] == 1
    assert home.messages("emails") == []
    database.script.clear()
    assert home.execute([message]) == []
    assert home.run("order", run_id)["status"] == "succeeded"


def test_answers_that_are_lost_change_nothing(home: AwsHome, database: Database) -> None:
    run_id = home.start("order")
    database.script["update_item"] = [LOST, None, LOST]  # of a claim, of a commit
    assert execute(home) == []
    run = home.run("order", run_id)
    assert (run["status"], run["steps"][0]["attempt"]) == ("succeeded", 1)
    assert len(home.messages("emails")) == 1


def test_a_start_on_a_silent_store_is_a_503(home: AwsHome, database: Database) -> None:
    database.script["put_item"] = [SILENCE] * 10
    answer = home.request("POST", "/workflows/order/runs", {})
    assert (answer.status, answer.body["code"]) == (503, "unavailable")


def test_an_outcome_that_no_item_has_room_for_fails_the_step_once(
    home: AwsHome, database: Database
) -> None:
    run_id = home.start("order")
    database.script["update_item"] = [None, refusal("ValidationException", TOO_LARGE)]
    assert execute(home) == []
    run = home.run("order", run_id)
    assert (run["status"], run["steps"][0]["code"]) == ("failed", "output_too_large")
    assert run["steps"][0]["error"].startswith("the outcome cannot be stored: ")
    assert len(home.messages("emails")) == 1


@pytest.mark.parametrize("code", ["ThrottlingException", "AccessDeniedException"])
def test_an_outcome_in_hand_waits_for_a_store_that_refuses_for_long(
    home: AwsHome, database: Database, code: str
) -> None:
    run_id = home.start("order")
    database.script["update_item"] = [None, *[refusal(code)] * 40]
    assert execute(home) == []
    run = home.run("order", run_id)
    assert (run["status"], run["steps"][0]["attempt"]) == ("succeeded", 1)
    assert len(home.messages("emails")) == 1


# --- the versions ------------------------------------------------------------------------------


def as_on_a_cold_start(home: AwsHome) -> None:
    """No definition is known by heart."""
    home.home.engine.advance._programs._cached.cache_clear()  # type: ignore[attr-defined]


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("error", [SILENCE, LOST, refusal("ThrottlingException")])
def test_a_definition_that_is_read_at_the_second_or_third_try_is_enough(
    home: AwsHome, database: Database, error: object, times: int
) -> None:
    run_id = home.start("order")
    as_on_a_cold_start(home)
    database.script["get_item"] = [error] * times
    assert execute(home) == []
    assert home.run("order", run_id)["status"] == "succeeded"


@pytest.mark.parametrize("error", [SILENCE, refusal("AccessDeniedException")])
def test_a_definition_that_cannot_be_read_now_leaves_the_run_as_it_was(
    home: AwsHome, database: Database, error: object
) -> None:
    run_id = home.start("order")
    home.clock.meanwhile = lambda: None  # no tick while the executor waits
    as_on_a_cold_start(home)
    database.script["get_item"] = [error] * 1_000
    (message,) = home._receive()
    home.execute([message])
    database.script.clear()
    head = home.home.engine.advance._runs.get(run_id)
    assert head is not None
    assert (head.status, head.lease_token, head.lost_leases, head.journal) == (
        "pending",
        None,
        0,
        b"",
    )
    home.drain()
    assert home.run("order", run_id)["status"] == "succeeded"


@pytest.mark.parametrize("error", [SILENCE, refusal("AccessDeniedException")])
def test_a_child_whose_definition_cannot_be_read_now_tells_its_output_later(
    home: AwsHome, database: Database, error: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.publish("parent", {"key": "call", "kind": "subworkflow", "target": "order"})
    run_id = home.start("parent")
    home.clock.meanwhile = lambda: None
    execute(home)
    runs = home.home.engine.advance._runs

    def die(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(type(runs), "deliver", die)
        with pytest.raises(SystemExit):
            execute(home)
    as_on_a_cold_start(home)
    home.clock.at += LEASE + CLOCK_MARGIN + 1
    home.tick()
    database.script["get_item"] = [None, *[error] * 1_000]  # after the head
    execute(home)
    database.script.clear()
    assert home.run("parent", run_id)["status"] == "waiting"
    home.clock.at += LEASE
    home.tick()
    home.drain()
    parent = home.run("parent", run_id)
    assert parent["status"] == "succeeded"
    assert parent["output"] is not None
    assert parent["output"] == parent["steps"][0]["child_output"]


@pytest.mark.parametrize("error", [SILENCE, refusal("AccessDeniedException")])
def test_a_resource_that_cannot_be_looked_up_now_costs_no_attempt(
    home: AwsHome, database: Database, error: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.publish("once", {**STEP, "max_attempts": 1})
    run_id = home.start("once")
    versions = home.home.engine.advance._programs
    load = versions.load

    def last(*key: Any) -> Any:
        """Nothing is answered once the definition is read."""
        found = load(*key)
        database.script["get_item"] = [error] * 1_000
        return found

    with monkeypatch.context() as patched:
        patched.setattr(versions, "load", last)
        execute(home)
    database.script.clear()
    run = home.run("once", run_id)
    assert (run["status"], run["steps"][0]["attempt"]) == ("pending", 0)
    assert "cannot be looked up now" in run["last_error"]
    home.clock.at += LEASE
    home.tick()
    home.drain()
    run = home.run("once", run_id)
    assert (run["status"], run["steps"][0]["attempt"]) == ("succeeded", 1)


def test_a_tick_asks_again_where_the_store_was_silent(home: AwsHome, database: Database) -> None:
    run_id = home.start("order")
    waiting(HINTS).clear()  # the hint of the start is lost
    home.clock.at += LEASE
    database.script["query"] = [SILENCE, SILENCE]
    home.tick()
    home.drain()
    assert home.run("order", run_id)["status"] == "succeeded"
