"""Deploying to an account and taking it away again, on moto; what fails, on scripted answers."""

import json
import zipfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
from botocore.stub import ANY, Stubber  # type: ignore[import-untyped]
from moto import mock_aws

from infra import deploy
from infra.assembly import DeployError, Target, read
from infra.cloud import Cloud, connect, pack
from tests.infra.templates import Assembly

REGION = "eu-west-1"
ACCOUNT = "123456789012"
BUCKET = f"shop-assets-{ACCOUNT}-{REGION}"
QUEUE = {"Type": "AWS::SQS::Queue", "Properties": {}}
TABLE = {
    "Type": "AWS::DynamoDB::Table",
    "DeletionPolicy": "Retain",
    "Properties": {
        "TableName": "shop-runs",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
    },
}


def write(folder: Path, stacks: Mapping[str, Mapping[str, Any]]) -> Path:
    """An assembly, as CDK writes it. Each stack needs the one before; each has a zipped folder."""
    artifacts: dict[str, Any] = {}
    needs: list[str] = []
    for name, resources in stacks.items():
        template = {"Resources": resources}
        folder.joinpath(f"asset.{name}").mkdir(parents=True, exist_ok=True)
        folder.joinpath(f"asset.{name}", "code.py").write_text(f"NAME = {name!r}\n")
        folder.joinpath(f"{name}.template.json").write_text(json.dumps(template))
        key = f"{name}-{len(json.dumps(template))}.json"
        files = {
            key: (f"{name}.template.json", "file", key),
            name: (f"asset.{name}", "zip", f"{name}.zip"),
        }
        bucket = "shop-assets-${AWS::AccountId}-${AWS::Region}"
        manifest = {
            "files": {
                one: {
                    "source": {"path": path, "packaging": packaging},
                    "destinations": {"here": {"bucketName": bucket, "objectKey": object_key}},
                }
                for one, (path, packaging, object_key) in files.items()
            }
        }
        folder.joinpath(f"{name}.assets.json").write_text(json.dumps(manifest))
        # The manifest lists a stack before what it needs: the order has to be found.
        artifacts = {
            name: {
                "type": "aws:cloudformation:stack",
                "properties": {
                    "templateFile": f"{name}.template.json",
                    "stackTemplateAssetObjectUrl": f"s3://{bucket}/{key}",
                    "tags": {"stepwell": "shop"},
                },
                "dependencies": [*needs, f"{name}.assets"],
            },
            f"{name}.assets": {
                "type": "cdk:asset-manifest",
                "properties": {"file": f"{name}.assets.json"},
            },
            **artifacts,
        }
        needs = [name]
    folder.joinpath("manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    return folder


@pytest.fixture
def assembly(tmp_path: Path) -> Path:
    return write(tmp_path, {"shop-data": {"Runs": TABLE}, "shop-compute": {"Hints": QUEUE}})


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        yield


@pytest.fixture
def cloud(aws: None) -> Cloud:
    return connect(REGION, pause=0.001)


def deployed(cloud: Cloud, assembly: Path) -> list[str]:
    said: list[str] = []
    deploy.up(assembly, cloud, said.append)
    return said


def test_stacks_are_deployed_in_the_order_in_which_they_need_each_other(
    cloud: Cloud, assembly: Path
) -> None:
    assert deployed(cloud, assembly) == [
        "shop-data: 2 of 2 files were new",
        "shop-data: deployed",
        "shop-compute: 2 of 2 files were new",
        "shop-compute: deployed",
    ]
    assert cloud.status("shop-data") == cloud.status("shop-compute") == "CREATE_COMPLETE"


def test_a_stack_gets_its_tags(cloud: Cloud, assembly: Path) -> None:
    deployed(cloud, assembly)
    (stack,) = cloud.cloudformation.describe_stacks(StackName="shop-data")["Stacks"]
    assert stack["Tags"] == [{"Key": "stepwell", "Value": "shop"}]


def test_a_folder_is_uploaded_as_an_archive(cloud: Cloud, assembly: Path) -> None:
    deployed(cloud, assembly)
    body = cloud.s3.get_object(Bucket=BUCKET, Key="shop-data.zip")["Body"].read()
    with zipfile.ZipFile(BytesIO(body)) as archive:
        assert archive.namelist() == ["code.py"]
        assert archive.read("code.py") == b"NAME = 'shop-data'\n"
        assert archive.infolist()[0].external_attr >> 16 == 0o644


def test_what_did_not_change_is_left_alone(cloud: Cloud, assembly: Path) -> None:
    deployed(cloud, assembly)
    assert deployed(cloud, assembly) == [
        "shop-data: 0 of 2 files were new",
        "shop-data: nothing to change",
        "shop-compute: 0 of 2 files were new",
        "shop-compute: nothing to change",
    ]
    for name in ("shop-data", "shop-compute"):
        found = cloud.cloudformation.list_change_sets(StackName=name)["Summaries"]
        assert [one for one in found if one["Status"] == "FAILED"] == []


def test_a_stack_may_be_left_out(cloud: Cloud, assembly: Path) -> None:
    said: list[str] = []
    deploy.up(assembly, cloud, said.append, without=["compute"])
    assert said == ["shop-data: 2 of 2 files were new", "shop-data: deployed"]


def test_what_changed_is_updated(cloud: Cloud, assembly: Path) -> None:
    deployed(cloud, assembly)
    write(assembly, {"shop-data": {"Runs": TABLE}, "shop-compute": {"Hints": QUEUE, "Dead": QUEUE}})
    assert deployed(cloud, assembly)[1:] == [
        "shop-data: nothing to change",
        "shop-compute: 1 of 2 files were new",
        "shop-compute: deployed",
    ]
    assert cloud.status("shop-compute") == "UPDATE_COMPLETE"
    assert cloud.resources("shop-compute").keys() == {"Hints", "Dead"}


def test_taking_away_leaves_the_data_and_a_later_deployment_takes_it_over(
    cloud: Cloud, assembly: Path
) -> None:
    deployed(cloud, assembly)
    said: list[str] = []
    assert deploy.down(assembly, cloud, said.append) == ["shop-data: shop-runs"]
    assert said == ["shop-compute: deleted", f"{BUCKET}: deleted"]
    assert cloud.status("shop-compute") == "ABSENT"
    assert cloud.s3.list_buckets()["Buckets"] == []
    assert deployed(cloud, assembly) == [
        "shop-data: 2 of 2 files were new",
        "shop-data: nothing to change",
        "shop-compute: 2 of 2 files were new",
        "shop-compute: deployed",
    ]


def test_taking_away_the_data_stack_says_what_its_template_keeps(
    cloud: Cloud, assembly: Path
) -> None:
    deployed(cloud, assembly)
    stays = deploy.down(assembly, cloud, lambda _: None, data=True)
    assert stays == ["shop-data (deleted): shop-runs"]
    assert cloud.status("shop-data") == "ABSENT"


def test_taking_away_what_is_not_there_does_nothing(cloud: Cloud, assembly: Path) -> None:
    said: list[str] = []
    assert deploy.down(assembly, cloud, said.append) == []
    assert said == ["shop-compute: not there", "shop-data: not there", f"{BUCKET}: not there"]


def test_the_data_stack_of_the_app_deploys(cloud: Cloud, default: Assembly, tmp_path: Path) -> None:
    resources = default.template("data").content["Resources"]
    deployed(cloud, write(tmp_path, {"stepwell-dev-data": resources}))
    assert sorted(cloud.resources("stepwell-dev-data")) == sorted(resources)
    stays = deploy.down(tmp_path, cloud, lambda _: None)
    assert len(stays) == 3


def test_the_assembly_of_the_app_is_read_in_the_order_of_its_stacks(default: Assembly) -> None:
    stacks = read(default.folder, Target(ACCOUNT, REGION))
    assert [stack.name for stack in stacks] == [
        f"stepwell-dev-{name}" for name in ("data", "compute", "api", "watch")
    ]
    assert stacks[0].name.endswith(deploy.DATA)
    bucket = f"stepwell-dev-assets-{ACCOUNT}-{REGION}"
    assert {file.bucket for stack in stacks for file in stack.files} == {bucket}
    assert all(file.source.exists() for stack in stacks for file in stack.files)


# --- what fails ---------------------------------------------------------------------------------


def test_without_templates_one_is_told_to_make_them(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match=r"holds no templates: run python -m infra\.app first"):
        read(tmp_path, Target(ACCOUNT, REGION))


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize("command", ["up", "down"])
def test_the_command_says_what_is_wrong_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert deploy.main([command, "--assembly", str(tmp_path)]) == 1
    assert capsys.readouterr().err == ("no region: give --region, or set one for the AWS SDK\n")
    assert deploy.main([command, "--assembly", str(tmp_path), "--region", REGION]) == 1
    assert capsys.readouterr().err.startswith(f"{tmp_path} holds no templates")


@pytest.mark.usefixtures("aws")
def test_the_command_says_what_it_did_and_what_stays(
    assembly: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = connect(REGION, pause=0.001)
    monkeypatch.setattr(deploy, "connect", lambda *_: cloud)
    assert deploy.main(["up", "--assembly", str(assembly)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "shop-compute: deployed"
    assert deploy.main(["down", "--assembly", str(assembly)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "stays: shop-data: shop-runs"


@pytest.fixture
def scripted() -> Iterator[tuple[Cloud, Stubber, Stubber]]:
    """A cloud whose answers are written down beforehand."""
    options = {
        "region_name": REGION,
        "aws_access_key_id": "testing",
        "aws_secret_access_key": "testing",
    }
    s3, formation = boto3.client("s3", **options), boto3.client("cloudformation", **options)
    with Stubber(s3) as of_s3, Stubber(formation) as of_formation:
        yield Cloud(s3, formation, Target(ACCOUNT, REGION), 0.001), of_s3, of_formation
        of_s3.assert_no_pending_responses()
        of_formation.assert_no_pending_responses()


def stack_of(status: str, name: str = "shop-data") -> dict[str, Any]:
    return {"Stacks": [{"StackName": name, "CreationTime": 0, "StackStatus": status}]}


def test_outputs_are_for_people_exports_are_not(scripted: tuple[Cloud, Stubber, Stubber]) -> None:
    cloud, _, formation = scripted
    answer = stack_of("CREATE_COMPLETE")
    answer["Stacks"][0]["Outputs"] = [
        {"OutputKey": "Url", "OutputValue": "https://runs.example.com"},
        {"OutputKey": "Ref", "OutputValue": "queue", "ExportName": "shop-compute:Ref"},
    ]
    formation.add_response("describe_stacks", answer)
    assert cloud.outputs("shop-api") == {"Url": "https://runs.example.com"}


def test_files_do_not_go_to_a_bucket_of_somebody_else(
    scripted: tuple[Cloud, Stubber, Stubber], assembly: Path
) -> None:
    cloud, s3, _ = scripted
    expected = {"Bucket": BUCKET, "ExpectedBucketOwner": ACCOUNT}
    s3.add_client_error("head_bucket", "403", expected_params=expected)
    with pytest.raises(DeployError, match=f"the bucket {BUCKET} cannot be used"):
        cloud.upload(read(assembly, cloud.target)[0].files)


def test_a_stack_that_is_being_changed_is_left_alone(
    scripted: tuple[Cloud, Stubber, Stubber], assembly: Path
) -> None:
    cloud, _, formation = scripted
    formation.add_response("describe_stacks", stack_of("UPDATE_IN_PROGRESS"))
    with pytest.raises(DeployError, match=r"shop-data is being changed \(UPDATE_IN_PROGRESS\)"):
        cloud.deploy(read(assembly, cloud.target)[0])


def test_what_a_failed_first_deployment_left_is_deleted_before_the_next(
    scripted: tuple[Cloud, Stubber, Stubber], assembly: Path
) -> None:
    cloud, _, formation = scripted
    formation.add_response("describe_stacks", stack_of("ROLLBACK_COMPLETE"))
    formation.add_response("delete_stack", {}, {"StackName": "shop-data"})
    formation.add_response("describe_stacks", stack_of("DELETE_COMPLETE"))
    expected = {
        "StackName": "shop-data",
        "ChangeSetName": ANY,
        "ChangeSetType": "CREATE",
        "TemplateURL": ANY,
        "Capabilities": ["CAPABILITY_IAM"],
        "Tags": ANY,
    }
    formation.add_response("create_change_set", {}, expected)
    formation.add_response("describe_change_set", {"Status": "CREATE_COMPLETE"})
    formation.add_response("execute_change_set", {})
    formation.add_response("describe_stacks", stack_of("CREATE_COMPLETE"))
    assert cloud.deploy(read(assembly, cloud.target)[0]) is True


def test_a_template_that_is_refused_says_why(
    scripted: tuple[Cloud, Stubber, Stubber], assembly: Path
) -> None:
    cloud, _, formation = scripted
    formation.add_response("describe_stacks", stack_of("CREATE_COMPLETE"))
    formation.add_response("create_change_set", {})
    refused = {"Status": "FAILED", "StatusReason": "No export named runs found."}
    formation.add_response("describe_change_set", refused)
    with pytest.raises(DeployError, match=r"^shop-data: No export named runs found\.$"):
        cloud.deploy(read(assembly, cloud.target)[0])


def test_a_deployment_that_fails_says_why_first_cause_first(
    scripted: tuple[Cloud, Stubber, Stubber], assembly: Path
) -> None:
    cloud, _, formation = scripted
    formation.add_response("describe_stacks", stack_of("CREATE_COMPLETE"))
    formation.add_response("create_change_set", {})
    formation.add_response("describe_change_set", {"Status": "CREATE_COMPLETE"})
    formation.add_response("execute_change_set", {})
    formation.add_response("describe_stacks", stack_of("UPDATE_ROLLBACK_COMPLETE"))
    newest_first = [
        event("Hints", "UPDATE_FAILED", "Resource update cancelled"),
        event("Dead", "CREATE_IN_PROGRESS", "Resource creation Initiated"),
        event("Runs", "UPDATE_FAILED", "Only one index at a time"),
    ]
    formation.add_response("describe_stack_events", {"StackEvents": newest_first})
    formation.add_response("describe_stacks", stack_of("UPDATE_ROLLBACK_COMPLETE"))
    with pytest.raises(DeployError) as failure:
        cloud.deploy(read(assembly, cloud.target)[0])
    assert str(failure.value).splitlines() == [
        "shop-data: UPDATE_ROLLBACK_COMPLETE",
        "  Runs: Only one index at a time",
        "  Hints: Resource update cancelled",
    ]


def event(resource: str, status: str, reason: str) -> dict[str, Any]:
    return {
        "StackId": "shop-data",
        "StackName": "shop-data",
        "EventId": resource,
        "Timestamp": 0,
        "LogicalResourceId": resource,
        "ResourceStatus": status,
        "ResourceStatusReason": reason,
    }


def test_the_same_folder_gives_the_same_archive_whatever_its_times(tmp_path: Path) -> None:
    archives = set()
    for name, order in (("a", ("x.py", "y/z.py")), ("b", ("y/z.py", "x.py"))):
        for path in order:
            file = tmp_path / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(path)
        archives.add(pack(tmp_path / name))
    assert len(archives) == 1
