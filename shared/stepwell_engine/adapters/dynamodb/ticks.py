"""The last tick, as an item of the control table."""

from typing import Final

from stepwell_engine.adapters.dynamodb.client import DynamoDB
from stepwell_engine.adapters.dynamodb.control import ControlTable, key_of
from stepwell_engine.adapters.dynamodb.models import TickItem
from stepwell_engine.core.values.units import EpochMs

PARTITION: Final = "t"  # no other one has a name without a #
NAME: Final = "last"


class DynamoTicks:
    """The Ticks port."""

    def __init__(self, database: DynamoDB, table: str) -> None:
        self._control = ControlTable(database, table)

    def last(self) -> EpochMs | None:
        """Read as it stands."""
        item = self._control.database.get(self._control.name, key_of(PARTITION, NAME))
        return None if item is None else TickItem.from_raw_data(dict(item)).began

    def record(self, began: EpochMs) -> None:
        """Put it: whichever tick is the last to write."""
        self._control.put(TickItem(partition=PARTITION, name=NAME, began=began))
