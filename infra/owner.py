"""The first way in: `python -m infra.owner --project shop` makes a project and an owner's token.

It writes to the installation's table with the credentials of the AWS SDK: whoever may write there
decides who owns what.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import botocore.session  # type: ignore[import-untyped]
from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

from infra.assembly import DeployError
from infra.cloud import Cloud, connect
from infra.deploy import DATA
from infra.installation import CONTROL_TABLE, URL, BadContext, Installation, from_values
from stepwell_engine.adapters.dynamodb.client import DynamoDB
from stepwell_engine.adapters.dynamodb.client import connect as connect_tables
from stepwell_engine.adapters.dynamodb.grants import DynamoGrants
from stepwell_engine.adapters.dynamodb.projects import DynamoProjects
from stepwell_engine.adapters.process.system import RandomIds, SystemClock
from stepwell_engine.core.values.times import iso
from stepwell_engine.errors import Problem, StoreError
from stepwell_engine.limits import DAY
from stepwell_engine.service.projects.identity import Identity, Role

ORGANIZATION: Final = "main"
LONGEST: Final = 365  # days that a token may work


@dataclass(frozen=True)
class Owner:
    """Where to go, and the token that opens it; `expires_at` in ms."""

    url: str
    project: str
    token: str
    expires_at: int


def make(
    cloud: Cloud,
    installation: Installation,
    identity: Identity,
    organization: str,
    project: str,
    expires_at: int,
) -> Owner:
    """The project, unless it is there, and a new token. DeployError, Problem, StoreError."""
    identity.create_project(organization, project)
    token = identity.mint_session(organization, Role.OWNER, expires_at)
    url = cloud.outputs(f"{installation.name}-api").get(URL, "not deployed yet")
    return Owner(url, project, token, expires_at)


def control_table(cloud: Cloud, installation: Installation) -> str:
    """The table that says who owns what. DeployError."""
    stack = f"{installation.name}{DATA}"
    table = cloud.outputs(stack).get(CONTROL_TABLE)
    if table is None:
        raise DeployError(
            f"there is no {stack} in {cloud.target.region} that names its tables: deploy it first"
        )
    return table


def main(arguments: Sequence[str]) -> int:
    """0; 1 with the reason on standard error; 2 for an argument that cannot be used."""
    given = _parser().parse_args(arguments)
    try:
        installation = from_values({"environment": given.environment})
        cloud = connect(given.region, given.profile, given.endpoint)
        table = control_table(cloud, installation)
        clock = SystemClock()
        session = botocore.session.Session(profile=given.profile)
        client = connect_tables(cloud.target.region, given.endpoint, session)
        database = DynamoDB(client, clock)
        identity = Identity(
            DynamoProjects(database, table), DynamoGrants(database, table), clock, RandomIds(clock)
        )
        expires_at = clock.now() + given.days * DAY
        owner = make(cloud, installation, identity, given.organization, given.project, expires_at)
    except BadContext as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except Problem as problem:
        sys.stderr.write(f"{problem.detail}\n")
        return 1
    except (DeployError, StoreError, BotoCoreError, ClientError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(
        f"url      {owner.url}\nproject  {owner.project}\n"
        f"token    {owner.token}\nexpires  {iso(owner.expires_at)}\n"
    )
    return 0


def _days(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= LONGEST):
        raise argparse.ArgumentTypeError(f"should be a number from 1 to {LONGEST}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.owner", description=__doc__)
    parser.add_argument("--project", required=True, help="its ref; made if it is not there")
    parser.add_argument(
        "--organization", default=ORGANIZATION, help=f"who owns it (default {ORGANIZATION})"
    )
    parser.add_argument("--days", type=_days, default=30, help="that the token works (default 30)")
    parser.add_argument("--environment", default="dev", help="of the installation (default dev)")
    parser.add_argument("--region", help="instead of the one set for the AWS SDK")
    parser.add_argument("--profile", help="instead of the one set for the AWS SDK")
    parser.add_argument("--endpoint", help="URL of an emulator")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
