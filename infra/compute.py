"""What works: the functions, the queue that feeds the executor, the minute's tick."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from infra.bundle import Compiler
from infra.functions import API, EXECUTOR, TICK, Common
from infra.installation import Installation
from infra.layer import engine_layer
from infra.messaging import Messaging
from infra.roles import Roles
from infra.storage import Storage

BATCH = 10


class Compute(Construct):
    """The functions `api`, `executor` and `tick`, and the queues in `messaging`."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        installation: Installation,
        storage: Storage,
        compiler: Compiler | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.messaging = Messaging(self, "Messaging")
        common = Common(
            installation,
            engine_layer(self, installation.requirements, compiler),
            {
                "STEPWELL_CONTROL_TABLE": storage.control.table_name,
                "STEPWELL_RUNS_TABLE": storage.runs.table_name,
                "STEPWELL_HINTS_QUEUE_URL": self.messaging.hints.queue_url,
                "STEPWELL_ALONE_QUEUE_URL": self.messaging.alone.queue_url,
                "STEPWELL_KEY_ID": storage.key.key_arn,
                "STEPWELL_QUEUE_PREFIX": installation.queue_prefix,
                "STEPWELL_DUE_SHARDS": str(installation.due_shards),
                **(
                    {"STEPWELL_ALLOWED_NETWORKS": installation.allowed_networks}
                    if installation.allowed_networks
                    else {}
                ),
            },
            compiler,
        )
        self.api, api_role = common.function(self, API, installation.api_concurrency)
        self.executor, executor_role = common.function(self, EXECUTOR)
        self.tick, tick_role = common.function(self, TICK)
        roles = Roles(cdk.Stack.of(self), installation, storage, self.messaging)
        roles.api(api_role)
        roles.executor(executor_role)
        roles.tick(tick_role)
        self._feed_executor(installation)
        self._schedule_tick()

    def _feed_executor(self, installation: Installation) -> None:
        feeds = (("Feed", self.messaging.hints, BATCH), ("FeedAlone", self.messaging.alone, 1))
        for construct_id, queue, batch_size in feeds:
            lambda_.EventSourceMapping(
                self,
                construct_id,
                target=self.executor,
                event_source_arn=queue.queue_arn,
                batch_size=batch_size,
                report_batch_item_failures=True,
                max_concurrency=installation.executor_concurrency,
            )

    def _schedule_tick(self) -> None:
        # The next tick finds what this one left: nothing is gained by repeating it late.
        self.tick.configure_async_invoke(retry_attempts=0, max_event_age=cdk.Duration.seconds(60))
        dead = self.messaging.dead_ticks
        role = iam.Role(
            self,
            "SchedulerRole",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
            ),
        )
        for action, arn in (
            ("lambda:InvokeFunction", self.tick.function_arn),
            ("sqs:SendMessage", dead.queue_arn),
        ):
            role.add_to_policy(iam.PolicyStatement(actions=[action], resources=[arn]))
        schedule = scheduler.CfnSchedule(
            self,
            "EveryMinute",
            description="Wakes the tick of Stepwell",
            schedule_expression="rate(1 minute)",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=self.tick.function_arn,
                role_arn=role.role_arn,
                input="{}",
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=60, maximum_retry_attempts=2
                ),
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(
                    arn=dead.queue_arn
                ),
            ),
        )
        # Scheduler checks at creation that it may do what the schedule says.
        schedule.node.add_dependency(role.node.find_child("DefaultPolicy"))
