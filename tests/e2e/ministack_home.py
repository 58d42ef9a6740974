"""The DynamoDB adapters on the emulator, whose transactions are isolated."""

import itertools
from typing import TYPE_CHECKING, Final

import botocore.session  # type: ignore[import-untyped]

from stepwell_engine.adapters.dynamodb.client import DynamoDB, connect
from stepwell_engine.adapters.dynamodb.grants import DynamoGrants
from stepwell_engine.adapters.dynamodb.heads import key_of
from stepwell_engine.adapters.dynamodb.models import ControlItem, HeadItem, definition
from stepwell_engine.adapters.dynamodb.projects import DynamoProjects
from stepwell_engine.adapters.dynamodb.resources import DynamoResources
from stepwell_engine.adapters.dynamodb.runs import DynamoRuns
from stepwell_engine.adapters.dynamodb.versions import DynamoVersions
from stepwell_engine.adapters.memory.queues import MemoryQueues
from stepwell_engine.adapters.process.system import SystemClock
from tests.e2e.emulator import REGION, ROOT_USER, Emulator
from tools.moto_home import SHARDS

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_NUMBERS: Final = itertools.count()


def tables_of(emulator: Emulator) -> "DynamoDBClient":
    """The client of the adapters, as the functions have it; for any number of threads."""
    session = botocore.session.Session()
    session.set_credentials(*ROOT_USER.values())
    session.set_config_variable("ca_bundle", str(emulator.certificate))
    return connect(REGION, emulator.url, session)


class MiniStackHome:
    """DynamoDB's part of the AWS home, on tables of its own."""

    def __init__(self, client: "DynamoDBClient") -> None:
        self._client = client
        number = next(_NUMBERS)
        self._names = (f"runs-{number}", f"control-{number}")
        for model, name in zip((HeadItem, ControlItem), self._names, strict=True):
            client.create_table(**definition(model, name))
        database = DynamoDB(client, SystemClock())
        runs, control = self._names
        self.runs = DynamoRuns(database, runs, SHARDS)
        self.projects = DynamoProjects(database, control)
        self.grants = DynamoGrants(database, control)
        self.versions = DynamoVersions(database, control)
        self.resources = DynamoResources(database, control)
        self.queues = MemoryQueues()

    def forget(self, run_id: str) -> None:
        self._client.delete_item(TableName=self._names[0], Key=key_of(run_id))

    def stored(self, run_id: str) -> object:
        return self._client.get_item(TableName=self._names[0], Key=key_of(run_id))["Item"]

    def close(self) -> None:
        for name in self._names:
            self._client.delete_table(TableName=name)
