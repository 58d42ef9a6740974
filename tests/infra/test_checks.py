"""The rules of AWS Solutions and of CloudFormation, and proof that they can fail."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.infra.templates import Assembly

STACKS = ("data", "compute", "api", "watch")
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


@pytest.fixture(scope="module")
def linted(
    default: Assembly, mailed: Assembly, chosen: Assembly, tmp_path_factory: pytest.TempPathFactory
) -> dict[Path, set[str]]:
    """The rules of cfn-lint that each template breaks, that of a broken one among them.

    In one run, for cfn-lint takes seconds to start. W3005 is about dependencies that CDK states
    twice.
    """
    content = default.template("data").content
    content["Resources"]["Wrong"] = {"Type": "AWS::SQS::Queue", "Properties": {"Depth": 3}}
    broken = tmp_path_factory.mktemp("broken") / "broken.template.json"
    broken.write_text(json.dumps(content))
    templates = [one.path(stack) for one in (default, chosen) for stack in STACKS]
    templates += [mailed.path("watch"), broken]
    command = [str(Path(sys.executable).with_name("cfn-lint")), "--ignore-checks", "W3005"]
    command += ["--regions", "eu-west-1", "--format", "json", "--template", *map(str, templates)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[Path, set[str]] = {path: set() for path in templates}
    for finding in json.loads(done.stdout):
        found[Path(finding["Filename"])].add(finding["Rule"]["Id"])
    return found


def test_cfn_lint_finds_nothing(linted: dict[Path, set[str]]) -> None:
    found = {path: rules for path, rules in linted.items() if path.name != "broken.template.json"}
    assert len(found) == 9
    assert {path: rules for path, rules in found.items() if rules} == {}


def test_cfn_lint_finds_a_property_that_does_not_exist(linted: dict[Path, set[str]]) -> None:
    (broken,) = (rules for path, rules in linted.items() if path.name == "broken.template.json")
    assert broken == {"E3002"}
