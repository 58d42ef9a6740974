"""Alarms on what must not go unnoticed, and who is notified."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_apigatewayv2 as gateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.functions import EXECUTOR, TICK, Function
from infra.installation import Installation
from stepwell_engine import limits

FIVE_MINUTES: Final = cdk.Duration.minutes(5)
# Nothing is wrong with a hint that waits for its time and is then worked on for as long as an
# executor may run; what is older than both by five minutes is stuck.
OLDEST_HINT: Final = limits.MAX_HINT_DELAY // limits.SECOND + EXECUTOR.timeout + 300
OVERDUE: Final = 5 * limits.MINUTE  # several ticks have failed to make somebody look

_NOT: Final = cloudwatch.TreatMissingData.NOT_BREACHING
_AT_LEAST: Final = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
_BELOW: Final = cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD


@dataclass(frozen=True)
class Watched:
    """What is watched, by the names of its alarms; tables with the names of their indexes."""

    hints: Mapping[str, sqs.IQueue]
    dead_letters: Mapping[str, sqs.IQueue]
    functions: Mapping[str, lambda_.IFunction]
    tick: lambda_.IFunction
    tables: Mapping[str, tuple[dynamodb.ITable, Sequence[str]]]
    api: gateway.IHttpApi


class Alarms(Construct):
    """All alarms, in `all`."""

    def __init__(
        self, scope: Construct, construct_id: str, installation: Installation, watched: Watched
    ) -> None:
        super().__init__(scope, construct_id)
        self.all: list[cloudwatch.Alarm] = []
        self._prefix = installation.name
        self._topic = self._topic_of(installation)
        self._hints(watched)
        for name, function in watched.functions.items():
            self._function(name, function)
        self._alarm(
            "TickNotRun",
            watched.tick.metric_invocations(period=FIVE_MINUTES, statistic="Sum"),
            1,
            "No tick for five minutes: whatever waits for a time does not go on. Look at the "
            "schedule, its dead letters and the tick's log.",
            comparison=_BELOW,
            missing=cloudwatch.TreatMissingData.BREACHING,
        )
        self._alarm(
            "RunsOverdue",
            reported(installation, TICK, "Overdue", "Maximum"),
            OVERDUE,
            "Runs are due that nobody advances: look at the executor's errors and log.",
        )
        self._alarm(
            "RunsFailed",
            reported(installation, EXECUTOR, "RunsFailed"),
            1,
            "A defect of the engine, or a document that it cannot read, stops a run: the "
            "executor's log has the run's id.",
        )
        for name, (table, indexes) in watched.tables.items():
            self._alarm(
                f"{name}TableThrottled",
                throttles(name, table, indexes),
                1,
                "DynamoDB throttles this table or an index of it: a hot partition, or a limit of "
                "the account.",
            )
        self._alarm(
            "ApiServerErrors",
            watched.api.metric_server_error(period=FIVE_MINUTES, statistic="Sum"),
            5,
            "The API answers 5xx: look at the log of the API function.",
        )

    def _hints(self, watched: Watched) -> None:
        for name, queue in watched.hints.items():
            self._alarm(
                f"Oldest{name}",
                queue.metric_approximate_age_of_oldest_message(
                    period=FIVE_MINUTES, statistic="Maximum"
                ),
                OLDEST_HINT,
                "Hints are not worked on: executors fail, are throttled, or are too few.",
            )
        for name, queue in watched.dead_letters.items():
            self._alarm(
                name,
                queue.metric_approximate_number_of_messages_visible(
                    period=FIVE_MINUTES, statistic="Maximum"
                ),
                1,
                "Something could not be delivered; the message says what. Mend the cause, then "
                "redrive or purge the queue.",
            )

    def _function(self, name: str, function: lambda_.IFunction) -> None:
        self._alarm(
            f"{name}Errors",
            function.metric_errors(period=FIVE_MINUTES, statistic="Sum"),
            1,
            "An invocation failed or timed out: look at the function's log.",
        )
        self._alarm(
            f"{name}Throttles",
            function.metric_throttles(period=FIVE_MINUTES, statistic="Sum"),
            1,
            "Lambda refuses invocations: the concurrency of the account or the reserved one is "
            "used up.",
        )

    def _alarm(
        self,
        name: str,
        metric: cloudwatch.IMetric,
        threshold: int,
        description: str,
        comparison: cloudwatch.ComparisonOperator = _AT_LEAST,
        missing: cloudwatch.TreatMissingData = _NOT,
    ) -> None:
        alarm = cloudwatch.Alarm(
            self,
            name,
            alarm_name=f"{self._prefix}-{name}",
            alarm_description=description,
            metric=metric,
            threshold=threshold,
            evaluation_periods=1,
            comparison_operator=comparison,
            treat_missing_data=missing,
        )
        if self._topic is not None:
            alarm.add_alarm_action(actions.SnsAction(self._topic))
            alarm.add_ok_action(actions.SnsAction(self._topic))
        self.all.append(alarm)

    def _topic_of(self, installation: Installation) -> sns.ITopic | None:
        if installation.alarm_topic is not None:
            return sns.Topic.from_topic_arn(self, "Topic", installation.alarm_topic)
        if installation.alarm_email is None:
            return None
        topic = sns.Topic(self, "Topic", enforce_ssl=True)
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
            )
        )
        topic.add_subscription(subscriptions.EmailSubscription(installation.alarm_email))
        return topic


def reported(
    installation: Installation, function: Function, name: str, statistic: str = "Sum"
) -> cloudwatch.Metric:
    """A metric that a function reports about itself, over five minutes."""
    return cloudwatch.Metric(
        namespace=installation.name,
        metric_name=name,
        dimensions_map={"service": function.name},
        statistic=statistic,
        period=FIVE_MINUTES,
    )


def throttles(
    name: str, table: dynamodb.ITable, indexes: Sequence[str]
) -> cloudwatch.MathExpression:
    """Throttled reads and writes of a table and of its indexes, in five minutes."""
    dimensions = [{"TableName": table.table_name}]
    dimensions += [
        {"TableName": table.table_name, "GlobalSecondaryIndexName": index} for index in indexes
    ]
    metrics = {
        f"{name.lower()}{kind}{index}": cloudwatch.Metric(
            namespace="AWS/DynamoDB",
            metric_name=f"{kind}ThrottleEvents",
            dimensions_map=dimension,
            statistic="Sum",
            period=FIVE_MINUTES,
        )
        for kind in ("Read", "Write")
        for index, dimension in enumerate(dimensions)
    }
    return cloudwatch.MathExpression(
        expression=" + ".join(f"FILL({name}, 0)" for name in metrics),
        label=name,
        using_metrics=metrics,
        period=FIVE_MINUTES,
    )
