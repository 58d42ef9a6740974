"""The app as the CDK command line runs it: what that says in the environment is what counts."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra.assembly import DeployError, Target, read
from tests.arch.sources import ROOT
from tests.infra.synthesize import QUICK
from tests.infra.templates import Assembly

BUCKET = "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"  # of `cdk bootstrap`
# As the command line gives it: its own values, and `-c NAME=VALUE` as text.
CONTEXT: dict[str, Any] = {
    "aws:cdk:enable-path-metadata": True,
    "aws:cdk:enable-asset-metadata": True,
    "aws:cdk:version-reporting": True,
    "aws:cdk:bundling-stacks": ["**"],
    QUICK.partition("=")[0]: False,
    "environment": "shop",
    "requirements": "false",
    "keep_data": "false",
}
STACKS = ("data", "compute", "api", "watch")


def run(command: list[str], output: Path, context: dict[str, Any]) -> tuple[int, str]:
    """Run the app in a process of its own; its exit code and what it said."""
    environment = {
        "PATH": os.environ["PATH"],
        "CDK_OUTDIR": str(output),
        "CDK_CONTEXT_JSON": json.dumps(context),
    }
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """What the app wrote where the command line said."""
    folder = tmp_path_factory.mktemp("cdk") / "out"
    code, said = run([sys.executable, "-m", "infra.app"], folder, CONTEXT)
    assert code == 0, said
    return Assembly(folder, "stepwell-shop")


def test_the_command_of_cdk_json_is_the_app() -> None:
    configured = json.loads((ROOT / "cdk.json").read_text("utf-8"))
    assert configured["app"].split() == [".venv/bin/python", "-m", "infra.app"]


def test_the_stacks_lie_where_the_command_line_said(written: Assembly) -> None:
    manifest = json.loads((written.folder / "manifest.json").read_text("utf-8"))
    stacks = {
        name
        for name, artifact in manifest["artifacts"].items()
        if artifact["type"] == "aws:cloudformation:stack"
    }
    assert stacks == {f"stepwell-shop-{name}" for name in STACKS}
    assert all(written.path(name).is_file() for name in STACKS)


def test_its_context_counts(written: Assembly) -> None:
    tables = written.template("data").all("DynamoDB::Table")
    content = written.template("data").content["Resources"]
    assert {content[name]["DeletionPolicy"] for name in tables} == {"Delete"}


@pytest.mark.parametrize("name", STACKS)
def test_every_asset_is_there_and_goes_to_the_bootstrap_bucket(
    written: Assembly, name: str
) -> None:
    listed = json.loads((written.folder / f"stepwell-shop-{name}.assets.json").read_text("utf-8"))
    assert listed["files"]
    for file in listed["files"].values():
        assert (written.folder / file["source"]["path"]).exists()
        for destination in file["destinations"].values():
            assert destination["bucketName"] == BUCKET


def test_the_code_of_the_functions_names_the_bootstrap_bucket(written: Assembly) -> None:
    functions = written.template("compute").all("Lambda::Function").values()
    assert len(functions) == 3
    for function in functions:
        assert function["Properties"]["Code"]["S3Bucket"] == {"Fn::Sub": BUCKET}


def test_our_own_deployment_leaves_the_bootstrap_bucket_alone(written: Assembly) -> None:
    with pytest.raises(DeployError, match="was written for the CDK command line"):
        read(written.folder, Target("123456789012", "eu-west-1"))


def test_a_context_value_that_does_not_exist_ends_the_synthesis(tmp_path: Path) -> None:
    code, said = run([sys.executable, "-m", "infra.app"], tmp_path, {"kepp_data": "false"})
    assert code == 2
    assert "context kepp_data: there is no such value, only environment, " in said


def test_an_output_on_the_command_line_is_stronger(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "infra.app", "--output", str(tmp_path / "ours")]
    command += ["--context", "requirements=false", "--context", QUICK]
    code, said = run(command, tmp_path / "theirs", {})
    assert code == 0, said
    assert not (tmp_path / "theirs").exists()
    buckets = {
        file.bucket
        for stack in read(tmp_path / "ours", Target("123456789012", "eu-west-1"))
        for file in stack.files
    }
    assert buckets == {"stepwell-dev-assets-123456789012-eu-west-1"}
