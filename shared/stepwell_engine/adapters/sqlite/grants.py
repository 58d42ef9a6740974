"""Grants in SQLite."""

from typing import Final

from stepwell_engine.adapters.sqlite.database import Database
from stepwell_engine.ports import Grant

# Texts are put together from the constants here alone; values are always bound.
# ruff: noqa: S608
_COLUMNS: Final = "token_hash, kind, organization, role, project, expires_at"
_PUT: Final = f"INSERT OR REPLACE INTO grants ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
_GET: Final = f"SELECT {_COLUMNS} FROM grants WHERE token_hash = ?"


class SqliteGrants:
    """The Grants port on a Database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, grant: Grant) -> None:
        """Create or replace a grant."""
        values = (
            grant.token_hash,
            grant.kind,
            grant.organization,
            grant.role,
            grant.project,
            grant.expires_at,
        )
        self._database.write(lambda connection: connection.execute(_PUT, values))

    def get(self, token_hash: str) -> Grant | None:
        """A grant, or None; whether it has expired is the caller's to judge."""
        row = self._database.row(_GET, (token_hash,))
        return None if row is None else Grant(*row)
