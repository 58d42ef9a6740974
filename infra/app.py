"""The CDK app: `python -m infra.app` writes the templates and their assets, offline, to cdk.out.

python -m infra.app --context environment=prod --context alarm_email=ops@example.com
"""

import argparse
import sys
from collections.abc import Sequence

import aws_cdk as cdk

from infra.installation import BadContext, from_context
from infra.nag import check
from infra.stacks import compose


def main(arguments: Sequence[str]) -> int:
    """Write the cloud assembly; 2 for a context value that cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m infra.app", description=__doc__)
    parser.add_argument("--output", default="cdk.out", help="folder to write to")
    parser.add_argument(
        "-c", "--context", action="append", default=[], metavar="NAME=VALUE", help="may be repeated"
    )
    given = parser.parse_args(arguments)
    try:
        app = cdk.App(outdir=given.output, context=_context(given.context))
        compose(app, from_context(app.node))
    except BadContext as error:
        sys.stderr.write(f"{error}\n")
        return 2
    check(app)
    app.synth()
    return 0


def _context(pairs: Sequence[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise BadContext(f"context {pair}: should be NAME=VALUE")
        found[name] = value
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
