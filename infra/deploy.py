"""Bring an installation to AWS, or take it away: `python -m infra.deploy up|down`.

It needs the credentials of the AWS SDK and what `python -m infra.app` wrote; no other tool, and no
preparation of the account.
"""

import argparse
import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

from infra.assembly import DeployError, Stack, read
from infra.cloud import Cloud, connect

Report = Callable[[str], None]
# The stack that outlives the others, by the end of its name.
DATA: Final = "-data"


def up(
    folder: Path, cloud: Cloud, report: Report, without: Collection[str] = ()
) -> Mapping[str, str]:
    """Deploy the stacks of an assembly; what they say, by name. DeployError.

    `without`: ends of the names of stacks that are left out (`watch`).
    """
    found: dict[str, str] = {}
    for stack in read(folder, cloud.target):
        if stack.name.endswith(tuple(f"-{name}" for name in without)):
            continue
        uploaded = cloud.upload(stack.files)
        report(f"{stack.name}: {uploaded} of {len(stack.files)} files were new")
        changed = cloud.deploy(stack)
        report(f"{stack.name}: {'deployed' if changed else 'nothing to change'}")
        found.update(cloud.outputs(stack.name))
    return found


def down(folder: Path, cloud: Cloud, report: Report, data: bool = False) -> Sequence[str]:
    """Delete the stacks, the last one first, and the files; what stays, a line each.

    The data stack is deleted only with `data`, and even then its template may keep what is in it.
    """
    stacks = read(folder, cloud.target)
    stays: list[str] = []
    for stack in reversed(stacks):
        if cloud.status(stack.name) == "ABSENT":
            report(f"{stack.name}: not there")
        elif stack.name.endswith(DATA) and not data:
            stays += [f"{stack.name}: {one}" for one in cloud.resources(stack.name).values()]
        else:
            stays += [f"{stack.name} (deleted): {one}" for one in _kept(stack, cloud)]
            cloud.delete(stack.name)
            report(f"{stack.name}: deleted")
    for bucket in sorted({file.bucket for stack in stacks for file in stack.files}):
        report(f"{bucket}: {'deleted' if cloud.drop_bucket(bucket) else 'not there'}")
    return stays


def _kept(stack: Stack, cloud: Cloud) -> Iterator[str]:
    """What a stack's template tells CloudFormation to leave alone."""
    template = json.loads(stack.template.source.read_text("utf-8"))
    names = cloud.resources(stack.name)
    for name, resource in template["Resources"].items():
        if resource.get("DeletionPolicy", "Delete") != "Delete" and name in names:
            yield names[name]


def main(arguments: Sequence[str]) -> int:
    """0; or 1 with the reason on standard error."""
    given = _parser().parse_args(arguments)
    folder = Path(given.assembly)
    try:
        cloud = connect(given.region, given.profile, given.endpoint)
        if given.command == "up":
            for name, value in up(folder, cloud, _say, given.without).items():
                _say(f"{name}: {value}")
        else:
            for line in down(folder, cloud, _say, given.data):
                _say(f"stays: {line}")
    except (DeployError, BotoCoreError, ClientError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.deploy", description=__doc__)
    parser.add_argument("command", choices=("up", "down"))
    parser.add_argument("--assembly", default="cdk.out", help="what python -m infra.app wrote")
    parser.add_argument("--region", help="instead of the one set for the AWS SDK")
    parser.add_argument("--profile", help="instead of the one set for the AWS SDK")
    parser.add_argument("--endpoint", help="URL of an emulator")
    parser.add_argument(
        "--without", action="append", default=[], help="up: leave a stack out, such as watch"
    )
    parser.add_argument(
        "--data", action="store_true", help="down: delete the data stack too (see docs/deploy.md)"
    )
    return parser


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
