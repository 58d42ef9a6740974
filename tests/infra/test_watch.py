"""The watch stack: alarms, whom they reach, the dashboard."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from stepwell_engine import limits
from tests.arch.sources import ROOT
from tests.infra.synthesize import CHOSEN
from tests.infra.templates import Assembly

AT_LEAST = "GreaterThanOrEqualToThreshold"


def alarm(assembly: Assembly, name: str) -> Mapping[str, Any]:
    found = assembly.template("watch").all("CloudWatch::Alarm").values()
    prefix = assembly.name
    (one,) = (one for one in found if one["Properties"]["AlarmName"] == f"{prefix}-{name}")
    properties: Mapping[str, Any] = one["Properties"]
    return properties


def widgets(assembly: Assembly) -> list[Any]:
    body = assembly.template("watch").one("CloudWatch::Dashboard")["DashboardBody"]
    text = "".join(part if isinstance(part, str) else "X" for part in body["Fn::Join"][1])
    return list(json.loads(text)["widgets"])


def test_the_alarms_are_these(default: Assembly) -> None:
    found = default.template("watch").all("CloudWatch::Alarm").values()
    assert {one["Properties"]["AlarmName"].removeprefix("stepwell-dev-") for one in found} == {
        "OldestHint",
        "OldestAloneHint",
        "DeadHints",
        "DeadTicks",
        "ApiErrors",
        "ExecutorErrors",
        "TickErrors",
        "ApiThrottles",
        "ExecutorThrottles",
        "TickThrottles",
        "TickNotRun",
        "RunsOverdue",
        "RunsFailed",
        "ControlTableThrottled",
        "RunsTableThrottled",
        "ApiServerErrors",
    }
    assert all(one["Properties"]["AlarmDescription"] for one in found)


@pytest.mark.parametrize(
    ("name", "queue"), [("OldestHint", "MessagingHints"), ("OldestAloneHint", "MessagingAlone")]
)
def test_a_hint_is_too_old_when_neither_its_delay_nor_its_work_explains_it(
    default: Assembly, name: str, queue: str
) -> None:
    found = alarm(default, name)
    assert found["MetricName"] == "ApproximateAgeOfOldestMessage"
    assert found["Threshold"] == 900 + 900 + 300
    assert (found["ComparisonOperator"], found["Statistic"]) == (AT_LEAST, "Maximum")
    assert queue in json.dumps(found["Dimensions"])


@pytest.mark.parametrize("name", ["DeadHints", "DeadTicks"])
def test_one_dead_letter_is_enough(default: Assembly, name: str) -> None:
    found = alarm(default, name)
    assert found["MetricName"] == "ApproximateNumberOfMessagesVisible"
    assert (found["Threshold"], found["ComparisonOperator"]) == (1, AT_LEAST)
    assert f"Messaging{name}" in json.dumps(found["Dimensions"])


@pytest.mark.parametrize("name", ["Api", "Executor", "Tick"])
@pytest.mark.parametrize("metric", ["Errors", "Throttles"])
def test_one_error_or_throttle_of_a_function_is_enough(
    default: Assembly, name: str, metric: str
) -> None:
    found = alarm(default, f"{name}{metric}")
    assert (found["MetricName"], found["Statistic"]) == (metric, "Sum")
    assert (found["Threshold"], found["ComparisonOperator"]) == (1, AT_LEAST)
    assert found["TreatMissingData"] == "notBreaching"
    assert f"Compute{name}Function" in json.dumps(found["Dimensions"])


def test_silence_of_the_tick_is_an_alarm(default: Assembly) -> None:
    found = alarm(default, "TickNotRun")
    assert found["MetricName"] == "Invocations"
    assert (found["Threshold"], found["ComparisonOperator"]) == (1, "LessThanThreshold")
    assert found["TreatMissingData"] == "breaching"
    assert found["Period"] * found["EvaluationPeriods"] == 300


@pytest.mark.parametrize(
    ("name", "metric", "service", "statistic", "threshold"),
    [
        ("RunsOverdue", "Overdue", "tick", "Maximum", 5 * limits.MINUTE),
        ("RunsFailed", "RunsFailed", "executor", "Sum", 1),
    ],
)
def test_what_functions_report_about_runs_is_watched(
    default: Assembly, name: str, metric: str, service: str, statistic: str, threshold: int
) -> None:
    found = alarm(default, name)
    assert (found["Namespace"], found["MetricName"]) == ("stepwell-dev", metric)
    assert found["Dimensions"] == [{"Name": "service", "Value": service}]
    assert (found["Statistic"], found["Threshold"]) == (statistic, threshold)
    assert found["ComparisonOperator"] == AT_LEAST


def test_every_metric_of_the_installation_is_one_that_functions_report(default: Assembly) -> None:
    names = {
        metric[1]
        for widget in widgets(default)
        for metric in widget["properties"].get("metrics", ())
        if metric[0] == "stepwell-dev"
    }
    assert {"Overdue", "RunsFailed", "StepsFailed"} <= names
    folders = (ROOT / "functions", ROOT / "shared")
    code = "".join(path.read_text("utf-8") for folder in folders for path in folder.rglob("*.py"))
    assert {name for name in names if f'"{name}"' not in code} == set()


@pytest.mark.parametrize(("name", "metrics"), [("Control", 2), ("Runs", 6)])
def test_throttles_of_a_table_and_of_its_indexes_count(
    default: Assembly, name: str, metrics: int
) -> None:
    parts = alarm(default, f"{name}TableThrottled")["Metrics"]
    counted = [part["MetricStat"]["Metric"] for part in parts if "MetricStat" in part]
    assert len(counted) == metrics
    assert {one["MetricName"] for one in counted} == {"ReadThrottleEvents", "WriteThrottleEvents"}
    (sum_of_all,) = (part["Expression"] for part in parts if "Expression" in part)
    assert all(f"FILL({part['Id']}, 0)" in sum_of_all for part in parts if "MetricStat" in part)


def test_alarms_go_to_the_topic_that_was_chosen(chosen: Assembly) -> None:
    watch = chosen.template("watch")
    assert watch.all("SNS::Topic") == {}
    for one in watch.all("CloudWatch::Alarm").values():
        assert one["Properties"]["AlarmActions"] == [CHOSEN["alarm_topic"]]
        assert one["Properties"]["OKActions"] == [CHOSEN["alarm_topic"]]


def test_alarms_are_mailed_by_a_topic_that_alarms_of_this_account_alone_may_use(
    mailed: Assembly,
) -> None:
    watch = mailed.template("watch")
    topic = {"Ref": watch.name("SNS::Topic", "Topic")}
    subscription = watch.one("SNS::Subscription")
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "ops@example.com")
    assert subscription["TopicArn"] == topic
    for one in watch.all("CloudWatch::Alarm").values():
        assert one["Properties"]["AlarmActions"] == [topic]
    allowed, denied = sorted(
        watch.one("SNS::TopicPolicy")["PolicyDocument"]["Statement"],
        key=lambda statement: str(statement["Effect"]),
    )
    assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allowed["Condition"] == {
        "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    }
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_without_an_address_alarms_tell_nobody(default: Assembly) -> None:
    watch = default.template("watch")
    assert watch.all("SNS::Topic") == {}
    for one in watch.all("CloudWatch::Alarm").values():
        assert "AlarmActions" not in one["Properties"]


def test_the_dashboard_begins_with_the_alarms(default: Assembly) -> None:
    dashboard = default.template("watch").one("CloudWatch::Dashboard")
    assert dashboard["DashboardName"] == "stepwell-dev"
    found = widgets(default)
    first = found[0]
    assert (first["type"], first["y"], first["width"]) == ("alarm", 0, 24)
    assert len(first["properties"]["alarms"]) == 16
    titles = [widget["properties"]["title"] for widget in found[1:]]
    assert titles == [
        "Hints: waiting, delayed, in work; age of the oldest",
        "Dead letters",
        "Ticks",
        "Steps",
        "Not as it should be",
        "Most overdue run (ms)",
        "Api: invocations, errors, throttles; duration",
        "Executor: invocations, errors, throttles; duration",
        "Tick: invocations, errors, throttles; duration",
        "API: requests, 4xx, 5xx",
        "API: latency",
        "Write units",
        "Read units",
        "Throttled by DynamoDB",
    ]


def test_the_dashboard_shows_both_queues_of_hints(default: Assembly) -> None:
    (hints,) = (one for one in widgets(default) if "Hints:" in one["properties"].get("title", ""))
    labels = [metric[-1]["label"] for metric in hints["properties"]["metrics"]]
    kinds = ("waiting", "delayed", "in work", "oldest (s)")
    assert set(labels) == {f"{name}: {kind}" for name in ("Hint", "AloneHint") for kind in kinds}
