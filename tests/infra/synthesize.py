"""Writes the assemblies that the tests look at, in one process: CDK takes seconds to start.

python -m tests.infra.synthesize FOLDER
"""

import json
import platform
import sys
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs

from infra import app
from infra.bundle import Compiler, find_compiler

ACCOUNT: Final = "123456789012"
QUICK: Final = "@aws-cdk/core:validateAgainstDefaultRules=false"
# Every context value that changes what is built.
CHOSEN: Final = {
    "environment": "shop",
    "log_level": "WARNING",
    "log_retention": "7",
    "throttle_rate": "5",
    "throttle_burst": "9",
    "api_concurrency": "20",
    "executor_concurrency": "3",
    "due_shards": "64",
    "deletion_protection": "false",
    "keep_data": "false",
    "requirements": "false",
    "alarm_topic": f"arn:aws:sns:eu-west-1:{ACCOUNT}:pager",
    "domain": "runs.example.com",
    "certificate": f"arn:aws:acm:eu-west-1:{ACCOUNT}:certificate/1",
    "allowed_networks": "10.0.0.0/8,fd00::/8",
    "functions": f"arn:aws:lambda:eu-west-1:{ACCOUNT}:function:shop-*",
    "databases": f"arn:aws:rds:eu-west-1:{ACCOUNT}:cluster:shop",
    "secrets": f"arn:aws:secretsmanager:eu-west-1:{ACCOUNT}:secret:shop-Ab12Cd",
}

REFUSED: Final = ("environment=Prod", "colour=red", "domain", "domain=a.example.com")


def main(folder: Path) -> None:
    """`default` and `mailed` by default values, `chosen` by CHOSEN, `bad` with findings.

    The code of the first two is compiled if there is a Python for that, that of `chosen` by this
    one, whatever its version, that of `plain` not at all; said.json: what each said. And in
    refused.json what came of the values in REFUSED: exit code and standard error.
    """
    own = Compiler(sys.executable, platform.python_version())
    bare = {"requirements": "false"}
    said = {
        "default": write(folder / "default", {}),
        "mailed": write(folder / "mailed", {"alarm_email": "ops@example.com", **bare}),
        "chosen": write(folder / "chosen", CHOSEN, lambda: own),
        "plain": write(folder / "plain", bare, lambda: None),
    }
    (folder / "said.json").write_text(json.dumps(said))
    (folder / "refused.json").write_text(json.dumps({one: refuse(folder, one) for one in REFUSED}))
    if app.synthesize(careless(folder / "bad")) != 1:
        raise SystemExit("the careless stack was let through")


def write(
    output: Path,
    context: dict[str, str],
    find: Callable[[], Compiler | None] = find_compiler,
) -> str:
    """One assembly, by the command that people use; what that said."""
    pairs = [QUICK, *(f"{name}={value}" for name, value in context.items())]
    arguments = [word for pair in pairs for word in ("--context", pair)]
    with redirect_stderr(StringIO()) as said:
        code = app.main(["--output", str(output), *arguments], find)
    if code != 0:
        raise SystemExit(f"{output.name} could not be synthesized:\n{said.getvalue()}")
    return said.getvalue()


def refuse(folder: Path, pair: str) -> tuple[int, str]:
    """Try a context value that cannot be used."""
    with redirect_stderr(StringIO()) as said:
        code = app.main(["--output", str(folder / "refused"), "--context", pair])
    return code, said.getvalue()


def careless(output: Path) -> cdk.App:
    """An app with a queue that any client may use in plain text, and a role that may do all."""
    careless_app = cdk.App(outdir=str(output))
    stack = cdk.Stack(careless_app, "Careless")
    sqs.Queue(stack, "Queue")
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    role.add_to_policy(iam.PolicyStatement(actions=["dynamodb:*"], resources=["*"]))
    return careless_app


if __name__ == "__main__":
    main(Path(sys.argv[1]))
