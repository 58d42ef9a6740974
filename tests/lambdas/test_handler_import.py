"""The handlers: imported with nothing set, cheap to start, and whole from event to answer."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from functions.api import handler as api
from functions.executor import handler as executor
from functions.tick import handler as tick
from stepwell_engine.lambdas.telemetry import ENGINE
from stepwell_engine.settings.aws import AwsSettings
from stepwell_engine.wiring.invocation import started
from tests.api.events import event
from tests.aws.installation import HINTS, installed, waiting
from tests.fresh import run

NAMES = ("api", "executor", "tick")
# What costs much and none of the three needs; the executor does without the second line, too.
UNWANTED = ("boto3", "aws_xray_sdk", "psycopg", "cryptography")
FOR_THE_API = ("pydantic", "requests", "aws_lambda_powertools.event_handler")
BOTOCORE = """
import botocore.session
botocore.session.get_session().create_client("dynamodb", region_name="eu-west-1")
"""
MOST = 1.45  # times the modules of botocore and its first client
OWN = ("functions", "stepwell_engine")


@pytest.mark.parametrize("name", NAMES)
def test_a_handler_is_imported_with_an_empty_environment(name: str) -> None:
    run(f"from functions.{name}.handler import handler")


@pytest.mark.parametrize("name", NAMES)
def test_a_handler_without_its_variables_says_which(name: str) -> None:
    code = f"""
from functions.{name}.handler import handler
try:
    handler({{}}, None)
except ValueError as error:
    print(error)
"""
    said = run(code, {"STEPWELL_RUNS_TABLE": "runs", "STEPWELL_KEY_ID": ""})
    assert said == (
        "STEPWELL_CONTROL_TABLE, STEPWELL_HINTS_QUEUE_URL, STEPWELL_ALONE_QUEUE_URL, "
        "STEPWELL_KEY_ID, STEPWELL_QUEUE_PREFIX: not set, but the deployment sets it\n"
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_handler_loads_nothing_that_it_does_not_need(name: str) -> None:
    unwanted = UNWANTED if name == "api" else (*UNWANTED, *FOR_THE_API)
    assert loaded(name) & set(unwanted) == set()


def test_the_executor_loads_few_libraries_beside_botocore() -> None:
    """Counted in modules; `make bench` says what that is in time, the engine's own included."""
    libraries = [name for name in loaded("executor") if name.split(".")[0] not in OWN]
    alone = run(f"import sys\n{BOTOCORE}\nprint(*sys.modules)").split()
    assert len(libraries) <= MOST * len(alone)


def loaded(name: str) -> set[str]:
    """The modules that the import of a handler loads."""
    return set(run(f"import sys, functions.{name}.handler\nprint(*sys.modules)").split())


# --- whole ------------------------------------------------------------------------------------


class Context:
    """What Lambda tells a handler."""

    aws_request_id = "request-7"
    invoked_function_arn = "arn:aws:lambda:eu-west-1:123456789012:function:stepwell-test-tick"

    def get_remaining_time_in_millis(self) -> int:
        return 900_000


@pytest.fixture
def settings(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AwsSettings]:
    """An installation that the environment describes, and logging left as it was."""
    engine = logging.getLogger(ENGINE)
    before = (list(engine.handlers), engine.level, engine.propagate)
    with installed(None) as settings:
        for name in (
            "runs_table",
            "control_table",
            "hints_queue_url",
            "alone_queue_url",
            "key_id",
            "queue_prefix",
        ):
            monkeypatch.setenv(f"STEPWELL_{name.upper()}", getattr(settings, name))
        monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "stepwell-test")
        # One of its own: Powertools keeps a service's logger, and with it where it prints to.
        monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", request.node.name)
        yield settings
    started.cache_clear()
    api._api.cache_clear()
    engine.handlers, engine.level, engine.propagate = before


def metrics(printed: str) -> dict[str, Any]:
    """The last metrics that were written."""
    found = [json.loads(line) for line in printed.splitlines() if '"_aws"' in line]
    (group,) = found[-1]["_aws"]["CloudWatchMetrics"]
    assert group["Namespace"] == "stepwell-test"
    return {one["Name"]: found[-1][one["Name"]] for one in group["Metrics"]}


def test_the_api_answers_and_tells_of_it(
    settings: AwsSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = api.handler(event("GET", "/v1/health"), Context())
    assert (answer["statusCode"], answer["body"]) == (200, '{"status":"ok"}')
    assert metrics(capsys.readouterr().out) == {"Invocations": [1.0]}


SOURCE = {"eventSourceARN": "arn:aws:sqs:eu-central-1:1:hints"}


def test_the_executor_logs_as_json_with_the_ids_of_run_and_invocation(
    settings: AwsSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [
        {"messageId": "1", "body": '{"r":"run-1","p":"shop"}', "eventSource": "aws:sqs", **SOURCE},
        {"messageId": "2", "body": "no hint", "eventSource": "aws:sqs", **SOURCE},
    ]
    assert executor.handler({"Records": records}, Context()) == {"batchItemFailures": []}
    printed = capsys.readouterr().out
    assert metrics(printed) == {"Invocations": [1.0], "HintsTaken": [1.0], "HintsRefused": [1.0]}
    (line,) = [json.loads(one) for one in printed.splitlines() if "was dropped" in one]
    assert (line["level"], line["function_request_id"]) == ("WARNING", "request-7")
    assert line["service"].startswith("test_the_executor_logs")


def test_the_tick_sends_hints_and_tells_of_it(
    settings: AwsSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    home, _ = started()
    services = home.engine.services
    services.workflows.publish(
        "shop", "nap", {"steps": [{"key": "a", "kind": "sleep", "sleep_for": "1h"}]}
    )
    services.starts.start("shop", "nap", b"{}")
    waiting(HINTS).clear()
    home.counters.take()
    tick.handler({}, Context())
    assert metrics(capsys.readouterr().out) == {
        "Invocations": [1.0],
        "HintsSent": [1.0],
        "Overdue": [0.0],
    }
    assert len(waiting(HINTS)) == 1


def test_the_wiring_is_made_once(settings: AwsSettings) -> None:
    tick.handler({}, Context())
    tick.handler({}, Context())
    assert started.cache_info().misses == 1
