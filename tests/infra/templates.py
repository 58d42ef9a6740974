"""Templates as the tests read them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Properties = Mapping[str, Any]


@dataclass(frozen=True)
class Assembly:
    """The output of one synthesis."""

    folder: Path
    name: str

    def path(self, stack: str) -> Path:
        """The file of the template of a stack: data, compute, api or watch."""
        return self.folder / f"{self.name}-{stack}.template.json"

    def template(self, stack: str) -> "Template":
        """The template of a stack."""
        return Template(json.loads(self.path(stack).read_text("utf-8")))

    def asset(self, code: Mapping[str, Any]) -> Path:
        """The folder that a function's Code, or a layer's Content, is zipped from."""
        for manifest in self.folder.glob("*.assets.json"):
            for file in json.loads(manifest.read_text("utf-8"))["files"].values():
                keys = [one["objectKey"] for one in file["destinations"].values()]
                if code["S3Key"] in keys:
                    return self.folder / str(file["source"]["path"])
        raise LookupError(code)


@dataclass(frozen=True)
class Template:
    """A template's content."""

    content: Mapping[str, Any]

    def all(self, kind: str) -> dict[str, Mapping[str, Any]]:
        """The resources of a type, by name."""
        resources = self.content["Resources"]
        return {name: one for name, one in resources.items() if one["Type"] == f"AWS::{kind}"}

    def one(self, kind: str, part: str = "") -> Properties:
        """The properties of the only resource of a type whose name contains a text."""
        found = [one for name, one in self.all(kind).items() if part in name]
        assert len(found) == 1, f"{len(found)} resources of type {kind} with {part!r}"
        properties: Properties = found[0]["Properties"]
        return properties

    def name(self, kind: str, part: str) -> str:
        """The name of the only resource of a type whose name contains a text."""
        (found,) = (name for name in self.all(kind) if part in name)
        return found


def arn_of(name: str) -> dict[str, list[str]]:
    """How a template writes the ARN of a resource of its own."""
    return {"Fn::GetAtt": [name, "Arn"]}


def statements(template: Template, part: str) -> list[Mapping[str, Any]]:
    """The statements of the policy of a role, by a part of its name."""
    document = template.one("IAM::Policy", part)["PolicyDocument"]
    return list(document["Statement"])


def listed(value: Any) -> list[Any]:
    """IAM writes a list of one as that one."""
    return value if isinstance(value, list) else [value]


def actions(template: Template, part: str) -> set[str]:
    """All that a role may do."""
    found = statements(template, part)
    return {action for statement in found for action in listed(statement["Action"])}


def resources(template: Template, part: str, action: str) -> list[str]:
    """On what a role may do something, as JSON texts."""
    return [
        json.dumps(resource)
        for statement in statements(template, part)
        if action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
    ]
