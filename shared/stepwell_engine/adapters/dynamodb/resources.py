"""Resources in DynamoDB's control table."""

from collections.abc import Sequence

from stepwell_engine.adapters.dynamodb.client import DynamoDB
from stepwell_engine.adapters.dynamodb.control import EXISTS, ControlTable, key_of
from stepwell_engine.adapters.dynamodb.models import ResourceItem
from stepwell_engine.core.values.units import Ms, ProjectRef
from stepwell_engine.ports import Resource


class DynamoResources:
    """The Resources port on a control table (see models)."""

    def __init__(self, database: DynamoDB, table: str) -> None:
        self._control = ControlTable(database, table)

    def put(self, resource: Resource) -> None:
        """Create or replace a resource."""
        item = ResourceItem(
            partition=f"r#{resource.project}#{resource.kind}",
            name=resource.name,
            config=resource.config,
            sealed=resource.sealed,
            created_at=resource.created_at,
        )
        self._control.put(item)

    def get(
        self, project: ProjectRef, kind: str, name: str, within: Ms | None = None
    ) -> Resource | None:
        """A resource, or None."""
        item = self._control.find(ResourceItem, f"r#{project}#{kind}", name, within)
        return None if item is None else _resource(project, kind, item)

    def delete(self, project: ProjectRef, kind: str, name: str) -> bool:
        """Delete a resource; False if there was none."""
        key = key_of(f"r#{project}#{kind}", name)
        return self._control.database.delete(self._control.name, key, EXISTS) is None

    def list(
        self, project: ProjectRef, kind: str, after: str | None, limit: int
    ) -> Sequence[Resource]:
        """By name, with names above `after`."""
        found: list[Resource] = []
        for items in self._control.pages(f"r#{project}#{kind}", after, limit):
            stored = (ResourceItem.from_raw_data(dict(item)) for item in items)
            found += [_resource(project, kind, item) for item in stored]
            if len(found) >= limit:
                break
        return found[:limit]


def _resource(project: ProjectRef, kind: str, item: ResourceItem) -> Resource:
    return Resource(project, kind, item.name, item.config, item.sealed, item.created_at)
