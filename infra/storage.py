"""What is kept: the tables, and the key that secrets are sealed with.

The tables are encrypted with a key of DynamoDB's own, which costs nothing. The customer key seals
the users' secrets inside them, at one call of KMS per secret that is sealed or opened: who reads a
table, or a backup of one, reads no secret.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct
from pynamodb.models import Model

from infra.installation import Installation
from stepwell_engine.adapters.dynamodb import models

_TYPES: Final = {
    "B": dynamodb.AttributeType.BINARY,
    "N": dynamodb.AttributeType.NUMBER,
    "S": dynamodb.AttributeType.STRING,
}
_PROJECTIONS: Final = {
    "INCLUDE": dynamodb.ProjectionType.INCLUDE,
    "KEYS_ONLY": dynamodb.ProjectionType.KEYS_ONLY,
}


class Storage(Construct):
    """The tables `control` and `runs`, shaped as the models say, and the `key`."""

    def __init__(self, scope: Construct, construct_id: str, installation: Installation) -> None:
        super().__init__(scope, construct_id)
        self._installation = installation
        self._removal = (
            cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
            if installation.keep_data
            else cdk.RemovalPolicy.DESTROY
        )
        self.key = kms.Key(
            self,
            "Key",
            description=f"Seals the secrets of {installation.name}",
            enable_key_rotation=True,
            removal_policy=self._removal,
        )
        self.control = self._table("Control", models.ControlItem)
        self.runs = self._table("Runs", models.HeadItem)

    def _table(self, construct_id: str, model: type[Model]) -> dynamodb.Table:
        shape = models.definition(model, construct_id)
        types = {
            one["AttributeName"]: _TYPES[one["AttributeType"]]
            for one in shape["AttributeDefinitions"]
        }
        partition, sort = _keys(shape["KeySchema"], types)
        table = dynamodb.Table(
            self,
            construct_id,
            partition_key=partition,
            sort_key=sort,
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            time_to_live_attribute=models.EXPIRES,
            deletion_protection=self._installation.deletion_protection,
            removal_policy=self._removal,
        )
        for index in shape.get("GlobalSecondaryIndexes", ()):
            partition, sort = _keys(index["KeySchema"], types)
            table.add_global_secondary_index(
                index_name=index["IndexName"],
                partition_key=partition,
                sort_key=sort,
                projection_type=_PROJECTIONS[index["Projection"]["ProjectionType"]],
                non_key_attributes=index["Projection"].get("NonKeyAttributes"),
            )
        return table


def index_arn(table: dynamodb.ITable, index: str) -> str:
    """The ARN that a role needs to read an index."""
    return f"{table.table_arn}/index/{index}"


def index_names() -> Sequence[str]:
    """The indexes of the table of runs."""
    shape = models.definition(models.HeadItem, "")
    return [index["IndexName"] for index in shape["GlobalSecondaryIndexes"]]


def _keys(
    schema: Sequence[Mapping[str, Any]], types: Mapping[str, dynamodb.AttributeType]
) -> tuple[dynamodb.Attribute, dynamodb.Attribute]:
    partition, sort = (
        dynamodb.Attribute(name=key["AttributeName"], type=types[key["AttributeName"]])
        for key in schema
    )
    return partition, sort
