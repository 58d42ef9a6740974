"""Projects, grants, workflow versions and resources in DynamoDB's control table."""

import uuid
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

from pynamodb.models import Model

from stepwell_engine.adapters.dynamodb.client import DynamoDB, Item, Rejected
from stepwell_engine.adapters.dynamodb.models import (
    ControlItem,
    GrantItem,
    ProjectItem,
    ResourceItem,
    VersionItem,
    WorkflowItem,
)
from stepwell_engine.errors import NewerFormat
from stepwell_engine.limits import DAY, FORMAT, SECOND
from stepwell_engine.ports import Grant, Project, Published, Resource

M = TypeVar("M", bound=Model)

KEPT_AFTER_EXPIRY: Final = 7 * DAY  # so that the bearer of a grant is told that it has expired
_DIGITS: Final = 10  # of a version in its sort key

_PARTITION: Final = ControlItem.partition.attr_name
_NAME: Final = ControlItem.name.attr_name
_NEWEST: Final = WorkflowItem.newest.attr_name
_HIGHEST: Final = WorkflowItem.highest.attr_name
_SET_UP_TO: Final = WorkflowItem.set_up_to.attr_name
_ENABLED: Final = WorkflowItem.enabled.attr_name
_FORMAT: Final = WorkflowItem.format.attr_name
_EXISTS: Final = f"attribute_exists({_PARTITION})"
_IS_NEW: Final = f"attribute_not_exists({_PARTITION})"
_SET: Final = f"SET {_SET_UP_TO} = {_NEWEST}, {_ENABLED} = :enabled, {_HIGHEST} = "
_READABLE: Final = f"{_FORMAT} <= :format"


class DynamoCatalog:
    """The Catalog port on a control table (see models).

    A workflow has one item that says which of its versions are enabled, so that one write flips
    all of them. Versions of a newer format raise NewerFormat where they are asked for; a list
    leaves them out.
    """

    def __init__(self, database: DynamoDB, table: str) -> None:
        self._database = database
        self._table = table

    def put_project(self, project: Project) -> None:
        """Create or replace a project."""
        item = ProjectItem(
            partition=f"p#{project.ref}",
            name="p",
            organization=project.organization,
            created_at=project.created_at,
        )
        self._database.put(self._table, item.serialize())

    def project(self, ref: str) -> Project | None:
        """A project, or None."""
        item = self._find(ProjectItem, f"p#{ref}", "p")
        return None if item is None else Project(ref, item.organization, item.created_at)

    def put_grant(self, grant: Grant) -> None:
        """Create or replace a grant."""
        expires_at = grant.expires_at
        item = GrantItem(
            partition=f"g#{grant.token_hash}",
            name="g",
            kind=grant.kind,
            organization=grant.organization,
            role=grant.role,
            project=grant.project,
            expires_at=expires_at,
            expires=None if expires_at is None else (expires_at + KEPT_AFTER_EXPIRY) // SECOND,
        )
        self._database.put(self._table, item.serialize())

    def grant(self, token_hash: str) -> Grant | None:
        """A grant, or None; whether it has expired is the caller's to judge."""
        item = self._find(GrantItem, f"g#{token_hash}", "g")
        if item is None:
            return None
        kind: Any = item.kind
        return Grant(token_hash, kind, item.organization, item.role, item.project, item.expires_at)

    def publish(
        self, project: str, workflow: str, document: bytes, enabled: bool, now: int
    ) -> Published:
        """Store version max + 1, and with it the workflow's item, in one transaction.

        Who was overtaken tries again after a pause: many at once come one after the other.
        """
        pauses = self._database.pauses(f"each new version of workflow {workflow}")
        while True:
            found = self._workflow(project, workflow)
            number = 1 if found is None else found.newest + 1
            published = Published(project, workflow, number, enabled, now, document, FORMAT)
            writes = [self._put_version(published), self._move(found, published)]
            if not self._database.transact(str(uuid.uuid4()), writes):
                return published
            next(pauses)

    def version(self, project: str, workflow: str, version: int) -> Published | None:
        """One version, or None."""
        found = self._workflow(project, workflow)
        return None if found is None else self._version(found, project, version)

    def newest(self, project: str, workflow: str) -> Published | None:
        """The highest version, or None."""
        found = self._workflow(project, workflow)
        return None if found is None else self._version(found, project, found.newest)

    def newest_enabled(self, project: str, workflow: str) -> Published | None:
        """The highest enabled version, or None."""
        found = self._workflow(project, workflow)
        if found is None or not found.highest:
            return None
        return self._version(found, project, found.highest)

    def workflows(self, project: str, after: str | None, limit: int) -> Sequence[Published]:
        """The newest version of each workflow, by name."""
        listed: list[Published] = []
        for items in self._pages(f"w#{project}", after, limit):
            readable = [item for item in items if int(item[_FORMAT]["N"]) <= FORMAT]
            found = [_workflow(item) for item in readable]
            keys = [_version_key(project, one.name, one.newest) for one in found]
            versions = {
                item[_PARTITION]["S"]: item for item in self._database.get_all(self._table, keys)
            }
            for one, key in zip(found, keys, strict=True):
                item = versions.get(key[_PARTITION]["S"])
                if item is not None and int(item[_FORMAT]["N"]) <= FORMAT:
                    listed.append(_published(one, item))
            if len(listed) >= limit:
                break
        return listed[:limit]

    def set_enabled(self, project: str, workflow: str, enabled: bool) -> bool:
        """Set the flag on every version; NewerFormat, and nothing set, if one is not ours."""
        values: dict[str, Any] = {
            ":enabled": {"BOOL": enabled},
            ":format": {"N": str(FORMAT)},
            **({} if enabled else {":none": {"N": "0"}}),
        }
        written = self._database.update(
            self._table,
            _workflow_key(project, workflow),
            UpdateExpression=_SET + (_NEWEST if enabled else ":none"),
            ConditionExpression=f"{_EXISTS} AND {_READABLE}",
            ExpressionAttributeValues=values,
        )
        if not isinstance(written, Rejected):
            return True
        if written.item is not None:
            _workflow(written.item)  # raises NewerFormat
        return False

    def put_resource(self, resource: Resource) -> None:
        """Create or replace a resource."""
        item = ResourceItem(
            partition=f"r#{resource.project}#{resource.kind}",
            name=resource.name,
            config=resource.config,
            sealed=resource.sealed,
            created_at=resource.created_at,
        )
        self._database.put(self._table, item.serialize())

    def resource(self, project: str, kind: str, name: str) -> Resource | None:
        """A resource, or None."""
        item = self._find(ResourceItem, f"r#{project}#{kind}", name)
        return None if item is None else _resource(project, kind, item)

    def resources(
        self, project: str, kind: str, after: str | None, limit: int
    ) -> Sequence[Resource]:
        """By name, with names above `after`."""
        found: list[Resource] = []
        for items in self._pages(f"r#{project}#{kind}", after, limit):
            stored = (ResourceItem.from_raw_data(dict(item)) for item in items)
            found += [_resource(project, kind, item) for item in stored]
            if len(found) >= limit:
                break
        return found[:limit]

    def drop_resource(self, project: str, kind: str, name: str) -> bool:
        """Delete a resource; False if there was none."""
        key = _key(f"r#{project}#{kind}", name)
        return self._database.delete(self._table, key, _EXISTS) is None

    def _seldom_changed(self, partition: str, name: str) -> Item | None:
        """An item at half the price: a replaced one may show up a moment late, a new one never."""
        key = _key(partition, name)
        found = self._database.get(self._table, key, consistent=False)
        return found or self._database.get(self._table, key)

    def _find(self, model: type[M], partition: str, name: str) -> M | None:
        item = self._seldom_changed(partition, name)
        return None if item is None else model.from_raw_data(dict(item))

    def _workflow(self, project: str, workflow: str) -> WorkflowItem | None:
        item = self._database.get(self._table, _workflow_key(project, workflow))
        return None if item is None else _workflow(item)

    def _version(self, workflow: WorkflowItem, project: str, version: int) -> Published | None:
        key = _version_key(project, workflow.name, version)
        item = self._seldom_changed(key[_PARTITION]["S"], key[_NAME]["S"])
        return None if item is None else _published(workflow, item)

    def _put_version(self, published: Published) -> Item:
        document = published.document
        deflated = zlib.compress(document)
        smaller = len(deflated) < len(document)
        key = _version_key(published.project, published.workflow, published.version)
        item = VersionItem(
            partition=key[_PARTITION]["S"],
            name=key[_NAME]["S"],
            created_at=published.created_at,
            enabled=published.enabled,
            plain=None if smaller else document,
            deflated=deflated if smaller else None,
            format=published.format,
        )
        return {
            "Put": {
                "TableName": self._table,
                "Item": item.serialize(),
                "ConditionExpression": _IS_NEW,
            }
        }

    def _move(self, found: WorkflowItem | None, published: Published) -> Item:
        """The write of a workflow's item that makes a version the newest one."""
        number = published.version
        if found is None:
            item = WorkflowItem(
                partition=f"w#{published.project}",
                name=published.workflow,
                newest=number,
                highest=number if published.enabled else 0,
                format=FORMAT,
            )
            put = {"Item": item.serialize(), "ConditionExpression": _IS_NEW}
            return {"Put": {"TableName": self._table, **put}}
        update = f"SET {_NEWEST} = :number"
        return {
            "Update": {
                "TableName": self._table,
                "Key": _workflow_key(published.project, published.workflow),
                "UpdateExpression": f"{update}, {_HIGHEST} = :number"
                if published.enabled
                else update,
                "ConditionExpression": f"{_NEWEST} = :seen AND {_READABLE}",
                "ExpressionAttributeValues": {
                    ":number": {"N": str(number)},
                    ":seen": {"N": str(found.newest)},
                    ":format": {"N": str(FORMAT)},
                },
            }
        }

    def _pages(self, partition: str, after: str | None, limit: int) -> Iterator[Sequence[Item]]:
        """The items of a partition with names above `after`, page by page."""
        condition, values = f"{_PARTITION} = :partition", {":partition": {"S": partition}}
        if after:
            condition = f"{condition} AND {_NAME} > :after"
            values[":after"] = {"S": after}
        start: dict[str, Item] = {}
        while True:
            items, following = self._database.query(
                self._table,
                KeyConditionExpression=condition,
                ExpressionAttributeValues=values,
                ConsistentRead=True,
                Limit=limit,
                **start,
            )
            yield items
            if following is None:
                return
            start = {"ExclusiveStartKey": following}


def _key(partition: str, name: str) -> dict[str, Any]:
    return {_PARTITION: {"S": partition}, _NAME: {"S": name}}


def _workflow_key(project: str, workflow: str) -> dict[str, Any]:
    return _key(f"w#{project}", workflow)


def _version_key(project: str, workflow: str, version: int) -> dict[str, Any]:
    return _key(f"v#{project}#{workflow}", f"{version:0{_DIGITS}}")


def _workflow(stored: Item) -> WorkflowItem:
    found = int(stored[_FORMAT]["N"])
    if found > FORMAT:
        raise NewerFormat(f"workflow {stored[_NAME]['S']}", found, FORMAT)
    return WorkflowItem.from_raw_data(dict(stored))


def _published(workflow: WorkflowItem, stored: Item) -> Published:
    partition, version = stored[_PARTITION]["S"], int(stored[_NAME]["S"])
    found = int(stored[_FORMAT]["N"])
    if found > FORMAT:
        raise NewerFormat(f"version {version} of workflow {workflow.name}", found, FORMAT)
    item = VersionItem.from_raw_data(dict(stored))
    flag = workflow.enabled if version <= (workflow.set_up_to or 0) else item.enabled
    document = item.plain if item.deflated is None else zlib.decompress(item.deflated)
    project = partition.removeprefix("v#").rpartition("#")[0]
    return Published(project, workflow.name, version, flag, item.created_at, document, item.format)


def _resource(project: str, kind: str, item: ResourceItem) -> Resource:
    return Resource(project, kind, item.name, item.config, item.sealed, item.created_at)
