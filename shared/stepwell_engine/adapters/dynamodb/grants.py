"""Grants in DynamoDB's control table."""

from typing import Any, Final

from stepwell_engine.adapters.dynamodb.client import DynamoDB
from stepwell_engine.adapters.dynamodb.control import ControlTable
from stepwell_engine.adapters.dynamodb.models import GrantItem
from stepwell_engine.limits import DAY, SECOND
from stepwell_engine.ports import Grant

KEPT_AFTER_EXPIRY: Final = 7 * DAY  # so that the bearer of a grant is told that it has expired


class DynamoGrants:
    """The Grants port on a control table (see models)."""

    def __init__(self, database: DynamoDB, table: str) -> None:
        self._control = ControlTable(database, table)

    def put(self, grant: Grant) -> None:
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
        self._control.put(item)

    def get(self, token_hash: str) -> Grant | None:
        """A grant, or None; whether it has expired is the caller's to judge."""
        item = self._control.find(GrantItem, f"g#{token_hash}", "g")
        if item is None:
            return None
        kind: Any = item.kind
        return Grant(token_hash, kind, item.organization, item.role, item.project, item.expires_at)
