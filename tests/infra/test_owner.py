"""The first way into an installation, on moto."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import pytest
from moto import mock_aws

from infra import owner
from infra.cloud import Cloud, connect
from infra.owner import LONGEST
from stepwell_engine.adapters.dynamodb.client import DynamoDB
from stepwell_engine.adapters.dynamodb.client import connect as connect_tables
from stepwell_engine.adapters.dynamodb.grants import DynamoGrants
from stepwell_engine.adapters.dynamodb.models import ControlItem, definition
from stepwell_engine.adapters.dynamodb.projects import DynamoProjects
from stepwell_engine.adapters.process.system import RandomIds, SystemClock
from stepwell_engine.limits import DAY
from stepwell_engine.service.projects.identity import Identity, Permission, Role

REGION = "eu-west-1"


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        yield connect(REGION, pause=0.001)


@pytest.fixture
def deployed(cloud: Cloud) -> Cloud:
    """The data stack, as far as it matters here."""
    shape = {**definition(ControlItem, "control"), "BillingMode": "PAY_PER_REQUEST"}
    create(
        cloud,
        "stepwell-dev-data",
        {"Control": {"Type": "AWS::DynamoDB::Table", "Properties": shape}},
        {"ControlTable": {"Value": {"Ref": "Control"}}},
    )
    return cloud


def create(
    cloud: Cloud, name: str, resources: Mapping[str, Any], outputs: Mapping[str, Any]
) -> None:
    template = json.dumps({"Resources": resources, "Outputs": outputs})
    cloud.cloudformation.create_stack(StackName=name, TemplateBody=template)


def identity(cloud: Cloud) -> Identity:
    table = cloud.outputs("stepwell-dev-data")["ControlTable"]
    clock = SystemClock()
    database = DynamoDB(connect_tables(REGION), clock)
    projects, grants = DynamoProjects(database, table), DynamoGrants(database, table)
    return Identity(projects, grants, clock, RandomIds(clock))


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    lines = capsys.readouterr().out.splitlines()
    return dict(re.split(r"\s+", line, maxsplit=1) for line in lines)


def test_the_token_opens_the_project_to_its_owner(
    deployed: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    assert owner.main(["--project", "shop", "--region", REGION]) == 0
    shown = said(capsys)
    assert (shown["project"], shown["url"]) == ("shop", "not deployed yet")
    office = identity(deployed)
    actor = office.identify(shown["token"])
    assert (actor.organization, actor.role) == ("main", Role.OWNER)
    office.authorize(actor, Permission.ADMINISTER, "shop")


def test_the_url_is_that_of_the_api(deployed: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    queue = {"Queue": {"Type": "AWS::SQS::Queue"}}
    create(deployed, "stepwell-dev-api", queue, {"Url": {"Value": "https://x"}})
    assert owner.main(["--project", "shop", "--region", REGION]) == 0
    assert said(capsys)["url"] == "https://x"


@pytest.mark.usefixtures("deployed")
@pytest.mark.parametrize("days", [1, LONGEST])
def test_the_token_works_for_the_days_asked_for(
    capsys: pytest.CaptureFixture[str], days: int
) -> None:
    began = SystemClock().now()
    assert owner.main(["--project", "shop", "--region", REGION, "--days", str(days)]) == 0
    expires = datetime.fromisoformat(said(capsys)["expires"]).timestamp() * 1000
    assert began + days * DAY <= expires <= SystemClock().now() + days * DAY


@pytest.mark.usefixtures("deployed")
def test_a_second_token_is_for_the_same_project(capsys: pytest.CaptureFixture[str]) -> None:
    tokens = []
    for _ in range(2):
        assert owner.main(["--project", "shop", "--region", REGION]) == 0
        tokens.append(said(capsys)["token"])
    assert tokens[0] != tokens[1]


@pytest.mark.usefixtures("deployed")
def test_a_project_of_another_organization_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert owner.main(["--project", "shop", "--region", REGION]) == 0
    capsys.readouterr()
    assert owner.main(["--project", "shop", "--organization", "rival", "--region", REGION]) == 1
    assert capsys.readouterr().err == 'the project ref "shop" is taken\n'


@pytest.mark.usefixtures("deployed")
@pytest.mark.parametrize("given", [["--project", "Shop"], ["--project", "a", "--organization", ""]])
def test_a_malformed_name_is_refused(capsys: pytest.CaptureFixture[str], given: list[str]) -> None:
    assert owner.main([*given, "--region", REGION]) == 1
    shown = capsys.readouterr()
    assert "must match [a-z0-9][a-z0-9_-]{0,63}" in shown.err
    assert shown.out == ""


@pytest.mark.usefixtures("cloud")
def test_without_an_installation_one_is_told_to_deploy(capsys: pytest.CaptureFixture[str]) -> None:
    assert owner.main(["--project", "shop", "--region", REGION]) == 1
    assert capsys.readouterr().err == (
        "there is no stepwell-dev-data in eu-west-1 that names its tables: deploy it first\n"
    )


@pytest.mark.usefixtures("cloud")
def test_an_environment_that_cannot_be_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert owner.main(["--project", "shop", "--environment", "Prod"]) == 2
    assert capsys.readouterr().err.startswith("context environment:")


@pytest.mark.parametrize("days", ["0", str(LONGEST + 1), "-1", "1.5", "many", "9" * 400])
def test_days_that_cannot_be_are_refused(capsys: pytest.CaptureFixture[str], days: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        owner.main(["--project", "shop", "--days", days])
    assert stopped.value.code == 2
    assert f"should be a number from 1 to {LONGEST}" in capsys.readouterr().err
