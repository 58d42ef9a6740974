"""A run's head as an item, and back."""

import zlib
from types import MappingProxyType
from typing import Any

from stepwell_engine.adapters.dynamodb.client import Item
from stepwell_engine.adapters.dynamodb.models import HEAD, HeadItem
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.values.units import ProjectRef, RunId, WorkflowName
from stepwell_engine.errors import NewerFormat
from stepwell_engine.limits import RUN_FORMAT

RUN_ID = HeadItem.run_id.attr_name
KIND = HeadItem.kind.attr_name
FORMAT_NAME = HeadItem.format.attr_name


def key_of(run_id: RunId, kind: str = HEAD) -> dict[str, Any]:
    """The primary key of a head, or of another item of a run."""
    return {RUN_ID: {"B": HeadItem.run_id.serialize(run_id)}, KIND: {"S": kind}}


def owner_of(project: ProjectRef, workflow: WorkflowName) -> str:
    """The partition of a workflow's runs in the index, but for busy moments."""
    return f"{project}#{workflow}"


def project_of(owner: str) -> ProjectRef:
    """The project of an item's owner, with or without a lane."""
    return owner.partition("#")[0]


def shard_of(run_id: RunId, shards: int) -> int:
    """The shard of the due index that a run is in, all its life."""
    return zlib.crc32(run_id.encode()) % shards


def to_item(head: Head, shards: int, lane: str | None = None) -> dict[str, Any]:
    """The item of a new head; `lane`: where it is listed in a busy moment."""
    item = HeadItem(
        run_id=head.run_id,
        owner=owner_of(head.project, head.workflow) if lane is None else lane,
        shard=shard_of(head.run_id, shards),
        wake_at=head.wake_at,
        version=head.version,
        created_at=head.created_at,
        status=head.status,
        ended_at=head.ended_at,
        ready_at=head.ready_at,
        token=head.lease_token,
        until=None if head.lease_token is None else head.lease_expires_at,
        claimed_at=None if head.lease_token is None else head.claimed_at,
        revision=head.inbox_seq,
        commit=head.commit_seq,
        lost=head.lost_leases or None,
        alone=1 if head.alone else None,
        alone_losses=head.alone_losses or None,
        journal=head.journal or None,
        inbox=head.inbox,
        input=head.input,
        idempotency_key=head.idempotency_key,
        test=head.test or None,
        parent=head.parent,
        depth=head.depth or None,
        notify_pending=head.notify_pending or None,
        cascade=head.cascade or None,
        format=head.format,
        overflow_last=head.overflow_last or None,
        overflow_count=head.overflow_count or None,
        wants=head.wants if head.wants_seq or head.wants else None,
        wants_seq=head.wants_seq if head.wants_seq or head.wants else None,
        deadline=head.deadline,
        generation=head.generation or None,
        told=head.told or None,
    )
    return item.serialize()


def from_item(stored: Item) -> Head:
    """The head that an item holds. NewerFormat, before anything else of it is read."""
    run_id = HeadItem.run_id.deserialize(stored[RUN_ID]["B"])
    found = int(stored[FORMAT_NAME]["N"])
    if found > RUN_FORMAT:
        raise NewerFormat(f"run {run_id}", found, RUN_FORMAT)
    item = HeadItem.from_raw_data(dict(stored))
    project, workflow = item.owner.split("#")[:2]
    return Head(
        run_id=run_id,
        project=project,
        workflow=workflow,
        version=item.version,
        created_at=item.created_at,
        status=item.status,
        ended_at=item.ended_at,
        ready_at=item.ready_at,
        wake_at=item.wake_at,
        lease_token=item.token,
        lease_expires_at=item.until or 0,
        claimed_at=max(item.claimed_at or 0, item.expires or 0) if item.token else 0,
        inbox_seq=item.revision,
        commit_seq=item.commit,
        lost_leases=item.lost or 0,
        alone=bool(item.alone),
        alone_losses=item.alone_losses or 0,
        journal=item.journal or b"",
        inbox=MappingProxyType(dict(item.inbox)),
        input=item.input,
        idempotency_key=item.idempotency_key,
        test=bool(item.test),
        parent=item.parent,
        depth=item.depth or 0,
        notify_pending=bool(item.notify_pending),
        cascade=bool(item.cascade),
        format=found,
        overflow_last=item.overflow_last or 0,
        overflow_count=item.overflow_count or 0,
        wants=item.wants or "",
        wants_seq=item.wants_seq or 0,
        deadline=item.deadline,
        generation=item.generation or 0,
        told=bool(item.told),
    )


def readable(item: Item) -> bool:
    """Whether this version reads the item's format."""
    return int(item[FORMAT_NAME]["N"]) <= RUN_FORMAT
