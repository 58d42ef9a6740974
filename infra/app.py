"""The CDK app: `python -m infra.app` writes the templates and their assets, offline, to cdk.out.

python -m infra.app --context environment=prod --context alarm_email=ops@example.com

The CDK command line runs it too: it says in the environment where to write and with which context,
and the assets are then for the bucket that `cdk bootstrap` made.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Final

import aws_cdk as cdk

from infra.bundle import UNCOMPILED, Compiler, find_compiler
from infra.installation import BadContext, Installation, from_context
from infra.nag import check
from infra.stacks import compose

CDK: Final = "@aws-cdk/"  # what CDK's own context values begin with
OUTPUT: Final = "cdk.out"
CLI_OUTPUT: Final = "CDK_OUTDIR"  # set by the CDK command line
_OUR_NAME: Final = re.compile("[a-z_]+")  # CDK's names have other characters too


def main(arguments: Sequence[str], find: Callable[[], Compiler | None] = find_compiler) -> int:
    """0; 1 for findings that nobody acknowledged; 2 for a context value that cannot be used.

    `find`: the Python that compiles the code for Lambda; without one a line says so.
    """
    parser = argparse.ArgumentParser(prog="python -m infra.app", description=__doc__)
    parser.add_argument("--output", help=f"folder to write to (default {OUTPUT})")
    parser.add_argument(
        "-c", "--context", action="append", default=[], metavar="NAME=VALUE", help="may be repeated"
    )
    given = parser.parse_args(arguments)
    by_cli = None if given.output else os.environ.get(CLI_OUTPUT)
    try:
        app = cdk.App(outdir=given.output or by_cli or OUTPUT, context=_context(given.context))
        _check_names(app)
        installation = from_context(app.node.try_get_context)
        compiler = find()
        compose(app, installation, compiler, bootstrapped=by_cli is not None)
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
        if not name.startswith(CDK):
            _check_name(name)
        found[name] = value == "true" if value in ("true", "false") else value
    return found


def _check_names(app: cdk.App) -> None:
    """Check what came by the environment too; what looks like CDK's own is left alone."""
    for name in app.node.get_all_context():
        if _OUR_NAME.fullmatch(name):
            _check_name(name)


def _check_name(name: str) -> None:
    if name not in Installation.model_fields:
        known = ", ".join(Installation.model_fields)
        raise BadContext(f"context {name}: there is no such value, only {known}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
