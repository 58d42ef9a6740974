"""The DynamoDB adapters on moto, in this process: tables made once, emptied for every home.

moto's transactions are not isolated between threads, so races are proven elsewhere.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

from moto import mock_aws
from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.table import Table

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

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

REGION = "eu-west-1"
RUNS, CONTROL = "runs-of-test", "control-of-test"
SHARDS = 4  # enough to go from one to the next
_MOCK = mock_aws()


@cache
def client() -> "DynamoDBClient":
    """A client of moto; the mock must be running."""
    return connect(REGION)


def table(name: str) -> Table:
    """moto's own table."""
    found: Table = dynamodb_backends["123456789012"][REGION].tables[name]
    return found


class DynamoHome:
    """DynamoDB's part of the AWS home; queues are SQS's and have tests of their own."""

    def __init__(self) -> None:
        _MOCK.start(reset=False)
        tables = client().list_tables()["TableNames"]
        for model, name in ((HeadItem, RUNS), (ControlItem, CONTROL)):
            if name not in tables:
                client().create_table(**definition(model, name))
            table(name).items.clear()
        database = DynamoDB(client(), SystemClock())
        self.runs = DynamoRuns(database, RUNS, SHARDS)
        self.projects = DynamoProjects(database, CONTROL)
        self.grants = DynamoGrants(database, CONTROL)
        self.versions = DynamoVersions(database, CONTROL)
        self.resources = DynamoResources(database, CONTROL)
        self.queues = MemoryQueues()

    def forget(self, run_id: str) -> None:
        client().delete_item(TableName=RUNS, Key=key_of(run_id))

    def stored(self, run_id: str) -> object:
        return client().get_item(TableName=RUNS, Key=key_of(run_id))["Item"]

    def items(self, name: str) -> list[dict[str, Any]]:
        """Everything in a table, by key."""
        found = client().scan(TableName=name)["Items"]
        keys = [key["AttributeName"] for key in table(name).schema]
        return sorted(found, key=lambda item: [str(item[key]) for key in keys])

    def close(self) -> None:
        _MOCK.stop(remove_data=False)
