"""The Lambda functions: their sizes, code and logs. What each may do is in roles.py."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.bundle import PYTHON, Compiler, function_code
from infra.installation import Installation
from infra.logs import log_group
from infra.nag import acknowledge

MEMORY: Final = 512  # MB; most of a step's time is spent waiting for others


@dataclass(frozen=True)
class Function:
    """A folder of functions/ with a module `handler`. `timeout` in seconds."""

    name: str
    timeout: int
    description: str


# One second before API Gateway gives up, so that the function's own log says what was slow.
API: Final = Function("api", 28, "Answers the API")
# An attempt may take 600 s, and another may have gone before it: as long as Lambda allows.
EXECUTOR: Final = Function("executor", 900, "Advances the runs that hints name")
TICK: Final = Function("tick", 60, "Sends hints for all that is due")


@dataclass(frozen=True)
class Common:
    """What all functions of an installation share."""

    installation: Installation
    layer: lambda_.ILayerVersion
    environment: Mapping[str, str]
    compiler: Compiler | None

    def function(
        self, scope: Construct, what: Function, concurrency: int | None = None
    ) -> tuple[lambda_.Function, iam.Role]:
        """A function, and its role, which may write the function's log and nothing else yet."""
        within = Construct(scope, what.name.capitalize())
        log = log_group(within, "Log", self.installation)
        role = iam.Role(within, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["logs:CreateLogStream", "logs:PutLogEvents"],
                resources=[log.log_group_arn],
            )
        )
        level = self.installation.log_level
        made = lambda_.Function(
            within,
            "Function",
            function_name=self.installation.function_name(what.name),
            description=what.description,
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            memory_size=MEMORY,
            timeout=cdk.Duration.seconds(what.timeout),
            code=function_code(what.name, self.compiler),
            handler=f"functions.{what.name}.handler.handler",
            layers=[self.layer],
            role=role,
            environment={
                **self.environment,
                "STEPWELL_LOG_LEVEL": level,
                "POWERTOOLS_SERVICE_NAME": what.name,
                "POWERTOOLS_METRICS_NAMESPACE": self.installation.name,
            },
            log_group=log,
            logging_format=lambda_.LoggingFormat.JSON,
            # The functions filter themselves: metrics are lines of the log, INFO to Lambda.
            application_log_level_v2=lambda_.ApplicationLogLevel.DEBUG
            if level == "DEBUG"
            else lambda_.ApplicationLogLevel.INFO,
            system_log_level_v2=lambda_.SystemLogLevel.WARN,
            reserved_concurrent_executions=concurrency,
            # Lambda would stop a run after 16 hints that lead to hints, taking it for a mistake.
            recursive_loop=lambda_.RecursiveLoop.ALLOW,
        )
        acknowledge(
            made,
            {
                "AwsSolutions-L1": f"Python {PYTHON} is the newest version that the engine is "
                "tested on, and the one that its packages are locked for."
            },
        )
        return made, role
