"""One page for whoever is called: is anything wrong, does work get done, what does it cost."""

from collections.abc import Sequence
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.alarms import Watched, reported, throttles
from infra.functions import EXECUTOR, TICK, Function
from infra.installation import Installation

WIDTH: Final = 24  # columns of a dashboard
MINUTE: Final = cdk.Duration.minutes(1)


class Dashboard(Construct):
    """The dashboard named after the installation."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        installation: Installation,
        watched: Watched,
        alarms: Sequence[cloudwatch.IAlarm],
    ) -> None:
        super().__init__(scope, construct_id)
        cloudwatch.Dashboard(
            self,
            "Page",
            dashboard_name=installation.name,
            default_interval=cdk.Duration.hours(3),
            widgets=[
                [cloudwatch.AlarmStatusWidget(title="Alarms", alarms=list(alarms), width=WIDTH)],
                _row(_waiting(watched), _dead(watched), _ticks(watched)),
                _row(*_engine(installation)),
                _row(*(_function(name, one) for name, one in watched.functions.items())),
                _row(*_api(watched)),
                _row(*_tables(watched)),
            ],
        )


def _row(*widgets: cloudwatch.GraphWidget) -> list[cloudwatch.IWidget]:
    return list(widgets)


def _graph(
    title: str,
    *left: cloudwatch.IMetric,
    right: Sequence[cloudwatch.IMetric] = (),
    columns: int = 3,
) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(
        title=title, left=list(left), right=list(right), width=WIDTH // columns, period=MINUTE
    )


def _waiting(watched: Watched) -> cloudwatch.GraphWidget:
    left: list[cloudwatch.IMetric] = []
    right: list[cloudwatch.IMetric] = []
    for name, queue in watched.hints.items():
        left += [
            queue.metric_approximate_number_of_messages_visible(label=f"{name}: waiting"),
            queue.metric_approximate_number_of_messages_delayed(label=f"{name}: delayed"),
            queue.metric_approximate_number_of_messages_not_visible(label=f"{name}: in work"),
        ]
        right.append(queue.metric_approximate_age_of_oldest_message(label=f"{name}: oldest (s)"))
    title = "Hints: waiting, delayed, in work; age of the oldest"
    return _graph(title, *left, right=right)


def _dead(watched: Watched) -> cloudwatch.GraphWidget:
    return _graph(
        "Dead letters",
        *(
            queue.metric_approximate_number_of_messages_visible(label=name)
            for name, queue in watched.dead_letters.items()
        ),
    )


def _ticks(watched: Watched) -> cloudwatch.GraphWidget:
    tick = watched.tick
    return _graph(
        "Ticks",
        tick.metric_invocations(label="ticks"),
        right=[tick.metric_duration(label="longest (ms)", statistic="Maximum")],
    )


def _engine(installation: Installation) -> list[cloudwatch.GraphWidget]:
    def of(function: Function, *names: str) -> list[cloudwatch.IMetric]:
        return [reported(installation, function, name) for name in names]

    lost = of(TICK, "HintsLost", "TicksCutShort")
    return [
        _graph("Steps", *of(EXECUTOR, "StepsSucceeded", "StepsFailed")),
        _graph(
            "Not as it should be",
            *of(EXECUTOR, "RunsFailed", "HintsRefused", "StoreUnavailable", "NewerFormats"),
            *lost,
        ),
        _graph("Most overdue run (ms)", reported(installation, TICK, "Overdue", "Maximum")),
    ]


def _function(name: str, function: lambda_.IFunction) -> cloudwatch.GraphWidget:
    return _graph(
        f"{name}: invocations, errors, throttles; duration",
        function.metric_invocations(label="invocations"),
        function.metric_errors(label="errors"),
        function.metric_throttles(label="throttles"),
        right=[
            function.metric_duration(label="p50 (ms)", statistic="p50"),
            function.metric_duration(label="p99 (ms)", statistic="p99"),
        ],
    )


def _api(watched: Watched) -> list[cloudwatch.GraphWidget]:
    api = watched.api
    return [
        _graph(
            "API: requests, 4xx, 5xx",
            api.metric_count(label="requests"),
            api.metric_client_error(label="4xx"),
            api.metric_server_error(label="5xx"),
            columns=2,
        ),
        _graph(
            "API: latency",
            api.metric_latency(label="p50 (ms)", statistic="p50"),
            api.metric_latency(label="p99 (ms)", statistic="p99"),
            columns=2,
        ),
    ]


def _tables(watched: Watched) -> list[cloudwatch.GraphWidget]:
    tables = watched.tables
    return [
        _graph("Write units", *(_units(name, "Write", one) for name, (one, _) in tables.items())),
        _graph("Read units", *(_units(name, "Read", one) for name, (one, _) in tables.items())),
        _graph(
            "Throttled by DynamoDB",
            *(throttles(name, one, indexes) for name, (one, indexes) in tables.items()),
        ),
    ]


def _units(name: str, kind: str, table: dynamodb.ITable) -> cloudwatch.IMetric:
    return cloudwatch.Metric(
        namespace="AWS/DynamoDB",
        metric_name=f"Consumed{kind}CapacityUnits",
        dimensions_map={"TableName": table.table_name},
        statistic="Sum",
        label=name,
    )
