"""What `python -m infra.app` wrote, read back: the stacks, their templates and their files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class DeployError(Exception):
    """The deployment cannot go on; the message says why, for the person who deploys."""


@dataclass(frozen=True)
class Target:
    """Where an assembly goes."""

    account: str
    region: str
    partition: str = "aws"

    def fill(self, text: str) -> str:
        """A text of the assembly with its placeholders replaced."""
        for name, value in (
            ("AccountId", self.account),
            ("Region", self.region),
            ("Partition", self.partition),
        ):
            text = text.replace(f"${{AWS::{name}}}", value)
        return text


@dataclass(frozen=True)
class File:
    """A file, or a folder that is to be zipped, and the object in S3 that it becomes."""

    source: Path
    zipped: bool
    bucket: str
    key: str


@dataclass(frozen=True)
class Stack:
    """A stack. `template` is one of its `files`."""

    name: str
    tags: Mapping[str, str]
    files: tuple[File, ...]
    template: File


def read(folder: Path, target: Target) -> Sequence[Stack]:
    """The stacks of an assembly, each behind those that it needs."""
    try:
        artifacts = json.loads((folder / "manifest.json").read_text("utf-8"))["artifacts"]
    except (OSError, ValueError, KeyError) as error:
        raise DeployError(f"{folder} holds no templates: run python -m infra.app first") from error
    return [_stack(folder, target, name, artifacts) for name in _in_order(artifacts)]


def _in_order(artifacts: Mapping[str, Any]) -> Iterator[str]:
    left = {
        name: {need for need in artifact.get("dependencies", ()) if _is_stack(artifacts[need])}
        for name, artifact in artifacts.items()
        if _is_stack(artifact)
    }
    while left:
        # CDK refuses stacks that need each other in a circle, so one is always free.
        name = next(name for name, needs in left.items() if not needs & left.keys())
        del left[name]
        yield name


def _is_stack(artifact: Mapping[str, Any]) -> bool:
    return bool(artifact["type"] == "aws:cloudformation:stack")


def _stack(folder: Path, target: Target, name: str, artifacts: Mapping[str, Any]) -> Stack:
    properties = artifacts[name]["properties"]
    files = tuple(
        file
        for need in artifacts[name]["dependencies"]
        if artifacts[need]["type"] == "cdk:asset-manifest"
        for file in _files(folder, target, artifacts[need]["properties"]["file"])
    )
    url = target.fill(properties["stackTemplateAssetObjectUrl"])
    template = next(file for file in files if url == f"s3://{file.bucket}/{file.key}")
    return Stack(
        name=properties.get("stackName", name),
        tags=properties.get("tags", {}),
        files=files,
        template=template,
    )


def _files(folder: Path, target: Target, manifest: str) -> Iterator[File]:
    listed = json.loads((folder / manifest).read_text("utf-8"))["files"]
    for file in listed.values():
        for destination in file["destinations"].values():
            if "assumeRoleArn" in destination:
                # Its bucket is the account's, not ours to make or to delete.
                raise DeployError(
                    f"{folder} was written for the CDK command line: run python -m infra.app first"
                )
            yield File(
                source=folder / file["source"]["path"],
                zipped=file["source"]["packaging"] == "zip",
                bucket=target.fill(destination["bucketName"]),
                key=target.fill(destination["objectKey"]),
            )
