"""What each function may do: the calls that it makes, on the things that it makes them on."""

from collections.abc import Sequence
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import IConstruct

from infra.functions import TICK
from infra.installation import Installation
from infra.messaging import Messaging
from infra.nag import acknowledge
from infra.storage import Storage, index_arn
from stepwell_engine.adapters.dynamodb.models import DueRuns, RunsOfWorkflow

# A transaction needs the permissions of its parts, and no other.
_READ: Final = ("dynamodb:BatchGetItem", "dynamodb:GetItem")
_WRITE: Final = ("dynamodb:PutItem", "dynamodb:UpdateItem")


class Roles:
    """Gives the functions of one stack their permissions."""

    def __init__(
        self, stack: cdk.Stack, installation: Installation, storage: Storage, messaging: Messaging
    ) -> None:
        self._stack = stack
        self._installation = installation
        self._storage = storage
        self._messaging = messaging

    def api(self, role: iam.Role) -> None:
        """Definitions, resources and runs; their queues; hints for what it starts."""
        storage = self._storage
        lists = ("dynamodb:DeleteItem", "dynamodb:Query")
        _allow(role, (*_READ, *_WRITE, *lists), storage.control.table_arn)
        _allow(role, (*_READ, *_WRITE), storage.runs.table_arn)
        of_workflow = index_arn(storage.runs, RunsOfWorkflow.Meta.index_name)
        _allow(role, ("dynamodb:Query",), of_workflow)
        _allow(role, ("kms:Encrypt",), storage.key.key_arn)
        self._send_hints(role)
        self._own_queues(
            role,
            "CreateQueue",
            "DeleteMessage",
            "DeleteQueue",
            "GetQueueAttributes",
            "ReceiveMessage",
            "SendMessage",
            "SetQueueAttributes",
        )

    def executor(self, role: iam.Role) -> None:
        """Runs, and what their steps are for."""
        storage, chosen = self._storage, self._installation
        _allow(role, _READ, storage.control.table_arn)
        # Signals beside a head are a query of its partition.
        _allow(role, (*_READ, *_WRITE, "dynamodb:Query"), storage.runs.table_arn)
        # A child's start looks there how many others there are.
        of_workflow = index_arn(storage.runs, RunsOfWorkflow.Meta.index_name)
        _allow(role, ("dynamodb:Query",), of_workflow)
        _allow(role, ("kms:Decrypt",), storage.key.key_arn)
        self._send_hints(role)
        consume = (
            "sqs:ChangeMessageVisibility",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
            "sqs:ReceiveMessage",
        )
        _allow(role, consume, self._messaging.hints.queue_arn, self._messaging.alone.queue_arn)
        _allow(role, ("sqs:SendMessage",), self._messaging.alone.queue_arn)
        self._own_queues(role, "SendMessage")
        _allow(role, ("lambda:InvokeFunction",), *chosen.functions)
        _allow(
            role,
            (
                "rds-data:BeginTransaction",
                "rds-data:CommitTransaction",
                "rds-data:ExecuteStatement",
                "rds-data:RollbackTransaction",
            ),
            *chosen.databases,
        )
        _allow(role, ("secretsmanager:GetSecretValue",), *chosen.secrets)
        _accept_chosen(role, (*chosen.functions, *chosen.databases, *chosen.secrets))

    def tick(self, role: iam.Role) -> None:
        """Reads what is due, notes when it did, and has a further tick go on if there is much."""
        due = index_arn(self._storage.runs, DueRuns.Meta.index_name)
        _allow(role, ("dynamodb:Query",), due)
        _allow(role, ("dynamodb:GetItem", "dynamodb:PutItem"), self._storage.control.table_arn)
        self._send_hints(role)
        # By its name: the function itself needs this role first.
        itself = self._stack.format_arn(
            service="lambda",
            resource="function",
            resource_name=self._installation.function_name(TICK.name),
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        _allow(role, ("lambda:InvokeFunction",), itself)

    def _send_hints(self, role: iam.Role) -> None:
        _allow(role, ("sqs:SendMessage",), self._messaging.hints.queue_arn)

    def _own_queues(self, role: iam.Role, *actions: str) -> None:
        prefix = self._installation.queue_prefix
        arn = self._stack.format_arn(service="sqs", resource=f"{prefix}*")
        _allow(role, [f"sqs:{action}" for action in actions], arn)
        reason = "The queues of projects come and go; their names have a prefix of their own."
        shown = f"arn:<AWS::Partition>:sqs:<AWS::Region>:<AWS::AccountId>:{prefix}*"
        acknowledge(role, {f"AwsSolutions-IAM5[Resource::{shown}]": reason})


def _accept_chosen(role: IConstruct, arns: Sequence[str]) -> None:
    reason = "Chosen by who deploys, in the context of the installation."
    for arn in arns:
        if "*" in arn:
            acknowledge(role, {f"AwsSolutions-IAM5[Resource::{arn}]": reason})


def _allow(role: iam.Role, actions: Sequence[str], *resources: str) -> None:
    if resources:
        role.add_to_policy(iam.PolicyStatement(actions=list(actions), resources=list(resources)))
