"""The CDK app: `python -m infra.app` writes the templates and their assets, offline, to cdk.out.

python -m infra.app --context environment=prod --context alarm_email=ops@example.com
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Final

import aws_cdk as cdk

from infra.bundle import UNCOMPILED, Compiler, find_compiler
from infra.installation import BadContext, Installation, from_context
from infra.nag import check
from infra.stacks import compose

CDK: Final = "@aws-cdk/"  # what CDK's own context values begin with


def main(arguments: Sequence[str], find: Callable[[], Compiler | None] = find_compiler) -> int:
    """0; 1 for findings that nobody acknowledged; 2 for a context value that cannot be used.

    `find`: the Python that compiles the code for Lambda; without one a line says so.
    """
    parser = argparse.ArgumentParser(prog="python -m infra.app", description=__doc__)
    parser.add_argument("--output", default="cdk.out", help="folder to write to")
    parser.add_argument(
        "-c", "--context", action="append", default=[], metavar="NAME=VALUE", help="may be repeated"
    )
    given = parser.parse_args(arguments)
    try:
        app = cdk.App(outdir=given.output, context=_context(given.context))
        installation = from_context(app.node.try_get_context)
        compiler = find()
        compose(app, installation, compiler)
    except BadContext as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if compiler is None:
        sys.stderr.write(f"{UNCOMPILED}\n")
    return synthesize(app)


def synthesize(app: cdk.App) -> int:
    """Check the app and write its assembly; 1 if there are findings, which CDK has then shown."""
    check(app)
    try:
        app.synth()
    except RuntimeError as error:
        if "ValidationFailed" not in str(error):
            raise
        return 1
    return 0


def _context(pairs: Sequence[str]) -> dict[str, str | bool]:
    found: dict[str, str | bool] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise BadContext(f"context {pair}: should be NAME=VALUE")
        if not name.startswith(CDK) and name not in Installation.model_fields:
            known = ", ".join(Installation.model_fields)
            raise BadContext(f"context {name}: there is no such value, only {known}")
        found[name] = value == "true" if value in ("true", "false") else value
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
