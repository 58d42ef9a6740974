"""The compute stack: functions, the queues of hints, the tick."""

import json
from pathlib import Path

import pytest

from stepwell_engine import limits
from stepwell_engine.settings import aws
from tests.infra.templates import Assembly, arn_of

TIMEOUTS = {"Api": 28, "Executor": 900, "Tick": 60}
QUEUES = ("Hints", "Alone", "DeadHints", "DeadTicks")
OF_HINTS = ("MessagingHints", "MessagingAlone")


@pytest.mark.parametrize("name", OF_HINTS)
def test_a_queue_hides_a_batch_for_as_long_as_an_executor_may_run(
    default: Assembly, name: str
) -> None:
    queue = default.template("compute").one("SQS::Queue", name)
    assert queue["VisibilityTimeout"] == TIMEOUTS["Executor"]
    assert queue["ReceiveMessageWaitTimeSeconds"] == 20
    assert "FifoQueue" not in queue
    # A hint reaches the dead letters before it is forgotten.
    deliveries = queue["RedrivePolicy"]["maxReceiveCount"]
    assert deliveries * queue["VisibilityTimeout"] < queue["MessageRetentionPeriod"]


def test_what_cannot_be_delivered_is_kept_for_two_weeks(default: Assembly) -> None:
    compute = default.template("compute")
    dead = compute.name("SQS::Queue", "DeadHints")
    for name in OF_HINTS:
        redrive = compute.one("SQS::Queue", name)["RedrivePolicy"]
        assert redrive == {"deadLetterTargetArn": arn_of(dead), "maxReceiveCount": 10}
    for name in ("DeadHints", "DeadTicks"):
        assert compute.one("SQS::Queue", name)["MessageRetentionPeriod"] == 14 * 86_400


@pytest.mark.parametrize("name", QUEUES)
def test_a_queue_is_encrypted_and_takes_nothing_without_tls(default: Assembly, name: str) -> None:
    compute = default.template("compute")
    assert compute.one("SQS::Queue", f"Messaging{name}")["SqsManagedSseEnabled"] is True
    (statement,) = compute.one("SQS::QueuePolicy", f"Messaging{name}")["PolicyDocument"][
        "Statement"
    ]
    assert (statement["Effect"], statement["Action"]) == ("Deny", "sqs:*")
    assert statement["Principal"] == {"AWS": "*"}
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert statement["Resource"] == arn_of(compute.name("SQS::Queue", f"Messaging{name}"))


@pytest.mark.parametrize("name", TIMEOUTS)
def test_a_function_runs_python_3_13_on_arm_with_512_mb(default: Assembly, name: str) -> None:
    function = default.template("compute").one("Lambda::Function", f"{name}Function")
    assert function["Architectures"] == ["arm64"]
    assert function["Runtime"] == "python3.13"
    assert function["MemorySize"] == 512
    assert function["Timeout"] == TIMEOUTS[name]
    assert function["Handler"] == f"functions.{name.lower()}.handler.handler"
    assert len(function["Layers"]) == 1


def test_the_times_of_the_functions_fit_what_they_do() -> None:
    assert TIMEOUTS["Api"] > limits.MAX_WAIT
    assert TIMEOUTS["Executor"] * limits.SECOND > limits.MAX_ACTION_TIMEOUT
    assert TIMEOUTS["Tick"] * limits.SECOND <= limits.MINUTE


@pytest.mark.parametrize("name", TIMEOUTS)
def test_a_function_is_told_where_things_are(default: Assembly, name: str) -> None:
    compute = default.template("compute")
    found = compute.one("Lambda::Function", f"{name}Function")["Environment"]["Variables"]
    hints = compute.name("SQS::Queue", "MessagingHints")
    imported = {key: json.dumps(value) for key, value in found.items()}
    assert "stepwell-dev-data:ExportsOutputRefStorageControl" in imported["STEPWELL_CONTROL_TABLE"]
    assert "stepwell-dev-data:ExportsOutputRefStorageRuns" in imported["STEPWELL_RUNS_TABLE"]
    assert "stepwell-dev-data:ExportsOutputFnGetAttStorageKey" in imported["STEPWELL_KEY_ID"]
    assert found["STEPWELL_HINTS_QUEUE_URL"] == {"Ref": hints}
    alone = compute.name("SQS::Queue", "MessagingAlone")
    assert found["STEPWELL_ALONE_QUEUE_URL"] == {"Ref": alone}
    assert found["STEPWELL_QUEUE_PREFIX"] == "stepwell-dev-q-"
    assert found["STEPWELL_LOG_LEVEL"] == "INFO"
    assert found["POWERTOOLS_SERVICE_NAME"] == name.lower()
    assert found["POWERTOOLS_METRICS_NAMESPACE"] == "stepwell-dev"
    assert found["STEPWELL_DUE_SHARDS"] == "16"
    assert len(found) == 10
    # These are all that the functions ask for.
    always = {*aws.REQUIRED, "STEPWELL_LOG_LEVEL", "STEPWELL_DUE_SHARDS"}
    assert always == {key for key in found if "STEPWELL" in key}


@pytest.mark.parametrize("name", TIMEOUTS)
def test_a_function_is_told_which_networks_are_allowed(chosen: Assembly, name: str) -> None:
    function = chosen.template("compute").one("Lambda::Function", f"{name}Function")
    found = function["Environment"]["Variables"]
    assert found["STEPWELL_ALLOWED_NETWORKS"] == "10.0.0.0/8,fd00::/8"
    assert found["STEPWELL_DUE_SHARDS"] == "64"
    assert {*aws.REQUIRED, *aws.OPTIONAL} == {key for key in found if "STEPWELL" in key}


@pytest.mark.parametrize("name", TIMEOUTS)
def test_a_function_logs_json_and_metrics_into_a_group_that_forgets(
    default: Assembly, chosen: Assembly, name: str
) -> None:
    for assembly, days, level in ((default, 30, "INFO"), (chosen, 7, "INFO")):
        compute = assembly.template("compute")
        logging = compute.one("Lambda::Function", f"{name}Function")["LoggingConfig"]
        assert logging["LogFormat"] == "JSON"
        assert logging["ApplicationLogLevel"] == level
        assert logging["LogGroup"] == {"Ref": compute.name("Logs::LogGroup", f"{name}Log")}
        assert compute.one("Logs::LogGroup", f"{name}Log")["RetentionInDays"] == days


@pytest.mark.parametrize("name", TIMEOUTS)
def test_lambda_does_not_take_hints_that_lead_to_hints_for_a_mistake(
    default: Assembly, name: str
) -> None:
    function = default.template("compute").one("Lambda::Function", f"{name}Function")
    assert function["RecursiveLoop"] == "Allow"


@pytest.mark.parametrize("name", TIMEOUTS)
def test_the_code_of_a_function_is_its_own_folder_alone(default: Assembly, name: str) -> None:
    function = default.template("compute").one("Lambda::Function", f"{name}Function")
    asset = default.asset(function["Code"])
    files = {path for path in asset.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    found = {path.relative_to(asset) for path in files}
    assert Path("functions/__init__.py") in found
    others = {path for path in found if path.parts[:2] != ("functions", name.lower())}
    assert others == {Path("functions/__init__.py")}
    assert {path.suffix for path in found} == {".py"}


@pytest.mark.parametrize(("queue", "size"), [("MessagingHints", 10), ("MessagingAlone", 1)])
def test_hints_feed_the_executor_ten_at_a_time_and_suspects_one_at_a_time(
    default: Assembly, chosen: Assembly, queue: str, size: int
) -> None:
    for assembly, concurrency in ((default, 50), (chosen, 3)):
        compute = assembly.template("compute")
        feeds = [one["Properties"] for one in compute.all("Lambda::EventSourceMapping").values()]
        arn = arn_of(compute.name("SQS::Queue", queue))
        (feed,) = [one for one in feeds if one["EventSourceArn"] == arn]
        function = compute.name("Lambda::Function", "ExecutorFunction")
        assert feed["FunctionName"] == {"Ref": function}
        assert feed["BatchSize"] == size
        assert feed["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert feed["ScalingConfig"] == {"MaximumConcurrency": concurrency}


def test_concurrency_is_reserved_for_the_api_alone_and_only_if_chosen(
    default: Assembly, chosen: Assembly
) -> None:
    for assembly, expected in ((default, {}), (chosen, {"stepwell-shop-api": 20})):
        functions = assembly.template("compute").all("Lambda::Function").values()
        reserved = {
            one["Properties"]["FunctionName"]: one["Properties"]["ReservedConcurrentExecutions"]
            for one in functions
            if "ReservedConcurrentExecutions" in one["Properties"]
        }
        assert reserved == expected


def test_the_tick_runs_every_minute_and_a_late_one_is_left_to_the_next(default: Assembly) -> None:
    compute = default.template("compute")
    schedule = compute.one("Scheduler::Schedule")
    assert schedule["ScheduleExpression"] == "rate(1 minute)"
    assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
    target = schedule["Target"]
    assert target["Arn"] == arn_of(compute.name("Lambda::Function", "TickFunction"))
    assert target["RoleArn"] == arn_of(compute.name("IAM::Role", "SchedulerRole"))
    dead = arn_of(compute.name("SQS::Queue", "DeadTicks"))
    assert target["DeadLetterConfig"] == {"Arn": dead}
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 2}
    invoked = compute.one("Lambda::EventInvokeConfig")
    assert invoked["FunctionName"] == {"Ref": compute.name("Lambda::Function", "TickFunction")}
    assert (invoked["MaximumEventAgeInSeconds"], invoked["MaximumRetryAttempts"]) == (60, 0)
