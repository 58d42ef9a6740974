"""The rules of AWS Solutions and of CloudFormation, and proof that they can fail."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.infra.templates import Assembly

ASSEMBLIES = ("default", "mailed", "chosen")


def report(folder: Path) -> dict[str, Any]:
    """What cdk-nag found."""
    whole = json.loads((folder / "validation-report.json").read_text("utf-8"))
    (found,) = (one for one in whole["pluginReports"] if one["pluginName"] == "AwsSolutions")
    return dict(found)


def acknowledged(folder: Path) -> set[tuple[str, str]]:
    """Where in the app which finding was accepted."""
    return {
        (path.removeprefix("/"), finding)
        for metadata in folder.glob("*.metadata.json")
        for path, entries in json.loads(metadata.read_text("utf-8")).items()
        for entry in entries
        if entry["type"] == "aws:cdk:acknowledged-rules"
        for finding in entry["data"]
    }


@pytest.mark.parametrize("name", ASSEMBLIES)
def test_no_finding_is_unexplained(assemblies: Path, name: str) -> None:
    found = report(assemblies / name)
    assert found["conclusion"] == "success"
    assert found["violations"] == []
    assert found["suppressedViolations"]
    for finding in found["suppressedViolations"]:
        assert len(finding["reason"].split()) >= 8


@pytest.mark.parametrize("name", ASSEMBLIES)
def test_no_explanation_is_left_without_its_finding(assemblies: Path, name: str) -> None:
    explained = {
        (finding["acknowledgedAt"], finding["acknowledgedId"])
        for finding in report(assemblies / name)["suppressedViolations"]
    }
    assert acknowledged(assemblies / name) == explained


def test_a_careless_stack_is_found(assemblies: Path) -> None:
    found = report(assemblies / "bad")
    assert found["conclusion"] == "failure"
    assert {finding["ruleName"] for finding in found["violations"]} == {
        "AwsSolutions-IAM5[Action::dynamodb:*]",
        "AwsSolutions-IAM5[Resource::*]",
        "AwsSolutions-SQS3",
        "AwsSolutions-SQS4",
    }


def cfn_lint(*templates: Path) -> subprocess.CompletedProcess[str]:
    """Run cfn-lint. W3005 is about dependencies that CDK states twice."""
    program = Path(sys.executable).with_name("cfn-lint")
    command = [str(program), "--ignore-checks", "W3005", "--regions"]
    command += ["eu-west-1", "us-east-1", "--template", *map(str, templates)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_cfn_lint_finds_nothing(default: Assembly, mailed: Assembly, chosen: Assembly) -> None:
    folders = (default.folder, mailed.folder, chosen.folder)
    templates = [path for folder in folders for path in folder.glob("*.template.json")]
    assert len(templates) == 12
    done = cfn_lint(*templates)
    assert done.returncode == 0, done.stdout + done.stderr


def test_cfn_lint_finds_a_property_that_does_not_exist(default: Assembly, tmp_path: Path) -> None:
    content = default.template("data").content
    content["Resources"]["Wrong"] = {"Type": "AWS::SQS::Queue", "Properties": {"Depth": 3}}
    broken = tmp_path / "broken.template.json"
    broken.write_text(json.dumps(content))
    done = cfn_lint(broken)
    assert "E3002" in done.stdout
    assert done.returncode != 0
