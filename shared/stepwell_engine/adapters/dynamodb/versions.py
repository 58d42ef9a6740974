"""Workflow versions in DynamoDB's control table."""

import uuid
import zlib
from collections.abc import Sequence
from typing import Any, Final

from stepwell_engine.adapters.dynamodb.client import DynamoDB, Item, Rejected
from stepwell_engine.adapters.dynamodb.control import (
    EXISTS,
    IS_NEW,
    NAME,
    PARTITION,
    ControlTable,
    key_of,
)
from stepwell_engine.adapters.dynamodb.models import VersionItem, WorkflowItem
from stepwell_engine.core.values.units import EpochMs, ProjectRef, WorkflowName
from stepwell_engine.errors import NewerFormat
from stepwell_engine.limits import FORMAT
from stepwell_engine.ports import Published

_DIGITS: Final = 10  # of a version in its sort key

_NEWEST: Final = WorkflowItem.newest.attr_name
_HIGHEST: Final = WorkflowItem.highest.attr_name
_SET_UP_TO: Final = WorkflowItem.set_up_to.attr_name
_ENABLED: Final = WorkflowItem.enabled.attr_name
_FORMAT: Final = WorkflowItem.format.attr_name
_SET: Final = f"SET {_SET_UP_TO} = {_NEWEST}, {_ENABLED} = :enabled, {_HIGHEST} = "
_READABLE: Final = f"{_FORMAT} <= :format"


class DynamoVersions:
    """The Versions port on a control table (see models).

    A workflow has one item that says which of its versions are enabled, so that one write flips
    all of them.
    """

    def __init__(self, database: DynamoDB, table: str) -> None:
        self._control = ControlTable(database, table)

    def publish(
        self,
        project: ProjectRef,
        workflow: WorkflowName,
        document: bytes,
        enabled: bool,
        now: EpochMs,
    ) -> Published:
        """Store version max + 1, and with it the workflow's item, in one transaction.

        Who was overtaken tries again after a pause: many at once come one after the other.
        """
        pauses = self._control.database.pauses(f"each new version of workflow {workflow}")
        while True:
            found = self._workflow(project, workflow)
            number = 1 if found is None else found.newest + 1
            published = Published(project, workflow, number, enabled, now, document, FORMAT)
            writes = [self._put_version(published), self._move(found, published)]
            if not self._control.database.transact(str(uuid.uuid4()), writes):
                return published
            next(pauses)

    def get(self, project: ProjectRef, workflow: WorkflowName, version: int) -> Published | None:
        """One version, or None."""
        found = self._workflow(project, workflow)
        return None if found is None else self._version(found, project, version)

    def newest(self, project: ProjectRef, workflow: WorkflowName) -> Published | None:
        """The highest version, or None."""
        found = self._workflow(project, workflow)
        return None if found is None else self._version(found, project, found.newest)

    def newest_enabled(self, project: ProjectRef, workflow: WorkflowName) -> Published | None:
        """The highest enabled version, or None."""
        found = self._workflow(project, workflow)
        if found is None or not found.highest:
            return None
        return self._version(found, project, found.highest)

    def set_enabled(self, project: ProjectRef, workflow: WorkflowName, enabled: bool) -> bool:
        """Set the flag on every version; NewerFormat, and nothing set, if one is not ours."""
        values: dict[str, Any] = {
            ":enabled": {"BOOL": enabled},
            ":format": {"N": str(FORMAT)},
            **({} if enabled else {":none": {"N": "0"}}),
        }
        written = self._control.database.update(
            self._control.name,
            _workflow_key(project, workflow),
            UpdateExpression=_SET + (_NEWEST if enabled else ":none"),
            ConditionExpression=f"{EXISTS} AND {_READABLE}",
            ExpressionAttributeValues=values,
        )
        if not isinstance(written, Rejected):
            return True
        if written.item is not None:
            _workflow(written.item)  # raises NewerFormat
        return False

    def list(self, project: ProjectRef, after: str | None, limit: int) -> Sequence[Published]:
        """The newest version of each workflow, by name."""
        listed: list[Published] = []
        for items in self._control.pages(f"w#{project}", after, limit):
            readable = [item for item in items if int(item[_FORMAT]["N"]) <= FORMAT]
            found = [_workflow(item) for item in readable]
            keys = [_version_key(project, one.name, one.newest) for one in found]
            versions = {
                item[PARTITION]["S"]: item
                for item in self._control.database.get_all(self._control.name, keys)
            }
            for one, key in zip(found, keys, strict=True):
                item = versions.get(key[PARTITION]["S"])
                if item is not None and int(item[_FORMAT]["N"]) <= FORMAT:
                    listed.append(_published(one, item))
            if len(listed) >= limit:
                break
        return listed[:limit]

    def _workflow(self, project: ProjectRef, workflow: WorkflowName) -> WorkflowItem | None:
        item = self._control.database.get(self._control.name, _workflow_key(project, workflow))
        return None if item is None else _workflow(item)

    def _version(
        self, workflow: WorkflowItem, project: ProjectRef, version: int
    ) -> Published | None:
        key = _version_key(project, workflow.name, version)
        item = self._control.seldom_changed(key[PARTITION]["S"], key[NAME]["S"])
        return None if item is None else _published(workflow, item)

    def _put_version(self, published: Published) -> Item:
        document = published.document
        deflated = zlib.compress(document)
        smaller = len(deflated) < len(document)
        key = _version_key(published.project, published.workflow, published.version)
        item = VersionItem(
            partition=key[PARTITION]["S"],
            name=key[NAME]["S"],
            created_at=published.created_at,
            enabled=published.enabled,
            plain=None if smaller else document,
            deflated=deflated if smaller else None,
            format=published.format,
        )
        return {
            "Put": {
                "TableName": self._control.name,
                "Item": item.serialize(),
                "ConditionExpression": IS_NEW,
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
            put = {"Item": item.serialize(), "ConditionExpression": IS_NEW}
            return {"Put": {"TableName": self._control.name, **put}}
        update = f"SET {_NEWEST} = :number"
        return {
            "Update": {
                "TableName": self._control.name,
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


def _workflow_key(project: ProjectRef, workflow: WorkflowName) -> dict[str, Any]:
    return key_of(f"w#{project}", workflow)


def _version_key(project: ProjectRef, workflow: WorkflowName, version: int) -> dict[str, Any]:
    return key_of(f"v#{project}#{workflow}", f"{version:0{_DIGITS}}")


def _workflow(stored: Item) -> WorkflowItem:
    found = int(stored[_FORMAT]["N"])
    if found > FORMAT:
        raise NewerFormat(f"workflow {stored[NAME]['S']}", found, FORMAT)
    return WorkflowItem.from_raw_data(dict(stored))


def _published(workflow: WorkflowItem, stored: Item) -> Published:
    partition, version = stored[PARTITION]["S"], int(stored[NAME]["S"])
    found = int(stored[_FORMAT]["N"])
    if found > FORMAT:
        raise NewerFormat(f"version {version} of workflow {workflow.name}", found, FORMAT)
    item = VersionItem.from_raw_data(dict(stored))
    flag = workflow.enabled if version <= (workflow.set_up_to or 0) else item.enabled
    document = item.plain if item.deflated is None else zlib.decompress(item.deflated)
    project = partition.removeprefix("v#").rpartition("#")[0]
    return Published(project, workflow.name, version, flag, item.created_at, document, item.format)
