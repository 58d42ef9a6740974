"""The data stack: tables as the models shape them, kept by default, and the key."""

from typing import Any

import pytest
from pynamodb.models import Model

from stepwell_engine.adapters.dynamodb import models
from tests.infra.templates import Assembly

TABLES = [("Control", models.ControlItem), ("Runs", models.HeadItem)]


@pytest.mark.parametrize(("name", "model"), TABLES)
def test_a_table_has_the_keys_and_indexes_of_its_model(
    default: Assembly, name: str, model: type[Model]
) -> None:
    table = default.template("data").one("DynamoDB::Table", name)
    shape = models.definition(model, "")
    assert table["KeySchema"] == shape["KeySchema"]
    assert by_name(table["AttributeDefinitions"]) == by_name(shape["AttributeDefinitions"])
    assert indexes(table) == indexes(shape)


def by_name(definitions: list[dict[str, str]]) -> dict[str, str]:
    return {one["AttributeName"]: one["AttributeType"] for one in definitions}


def indexes(table: Any) -> dict[str, Any]:
    return {one["IndexName"]: one for one in table.get("GlobalSecondaryIndexes", ())}


def test_the_runs_have_a_list_of_keys_and_a_sparse_index_of_what_is_due(default: Assembly) -> None:
    found = indexes(default.template("data").one("DynamoDB::Table", "Runs"))
    projections = {name: one["Projection"]["ProjectionType"] for name, one in found.items()}
    assert projections == {"runs-of-workflow": "KEYS_ONLY", "due-runs": "INCLUDE"}


@pytest.mark.parametrize(("name", "model"), TABLES)
def test_a_table_is_on_demand_recoverable_and_forgets(
    default: Assembly, name: str, model: type[Model]
) -> None:
    table = default.template("data").one("DynamoDB::Table", name)
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["TimeToLiveSpecification"] == {"AttributeName": models.EXPIRES, "Enabled": True}
    # DynamoDB's own key: the customer key is for secrets.
    assert "SSESpecification" not in table


def test_the_key_is_rotated_and_open_to_the_account_alone(default: Assembly) -> None:
    key = default.template("data").one("KMS::Key")
    assert key["EnableKeyRotation"] is True
    (statement,) = key["KeyPolicy"]["Statement"]
    account = ["arn:", {"Ref": "AWS::Partition"}, ":iam::", {"Ref": "AWS::AccountId"}, ":root"]
    assert statement["Principal"] == {"AWS": {"Fn::Join": ["", account]}}


def test_data_outlives_its_stack_unless_chosen_otherwise(
    default: Assembly, chosen: Assembly
) -> None:
    for assembly, policy, protected in (
        (default, "RetainExceptOnCreate", True),
        (chosen, "Delete", False),
    ):
        data = assembly.template("data")
        kept = {**data.all("DynamoDB::Table"), **data.all("KMS::Key")}
        assert len(kept) == 3
        assert {one["DeletionPolicy"] for one in kept.values()} == {policy}
        tables = data.all("DynamoDB::Table").values()
        assert {one["Properties"]["DeletionProtectionEnabled"] for one in tables} == {protected}


def test_all_else_goes_with_its_stack(default: Assembly) -> None:
    for stack in ("compute", "api", "watch"):
        resources = default.template(stack).content["Resources"].values()
        assert {one.get("DeletionPolicy", "Delete") for one in resources} == {"Delete"}


def test_the_stack_names_the_table_that_the_first_owner_is_written_to(default: Assembly) -> None:
    template = default.template("data")
    output = template.content["Outputs"]["ControlTable"]
    assert output["Value"] == {"Ref": template.name("DynamoDB::Table", "Control")}
    assert "Export" not in output
