"""Resources in SQLite."""

from collections.abc import Sequence
from typing import Final

from stepwell_engine.adapters.sqlite.database import Database
from stepwell_engine.core.values.units import Ms, ProjectRef
from stepwell_engine.ports import Resource

# Texts are put together from the constants here alone; values are always bound.
# ruff: noqa: S608
_COLUMNS: Final = "project, kind, name, config, sealed, created_at"
_PUT: Final = f"INSERT OR REPLACE INTO resources ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
_OF_KIND: Final = f"SELECT {_COLUMNS} FROM resources WHERE project = ? AND kind = ?"
_GET: Final = f"{_OF_KIND} AND name = ?"
_LIST: Final = f"{_OF_KIND} AND name > ? ORDER BY name LIMIT ?"
_DELETE: Final = "DELETE FROM resources WHERE project = ? AND kind = ? AND name = ?"


class SqliteResources:
    """The Resources port on a Database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, resource: Resource) -> None:
        """Create or replace a resource."""
        values = (
            resource.project,
            resource.kind,
            resource.name,
            resource.config,
            resource.sealed,
            resource.created_at,
        )
        self._database.write(lambda connection: connection.execute(_PUT, values))

    def get(
        self,
        project: ProjectRef,
        kind: str,
        name: str,
        within: Ms | None = None,  # noqa: ARG002
    ) -> Resource | None:
        """A resource, or None."""
        row = self._database.row(_GET, (project, kind, name))
        return None if row is None else Resource(*row)

    def list(
        self, project: ProjectRef, kind: str, after: str | None, limit: int
    ) -> Sequence[Resource]:
        """By name, with names above `after`."""
        rows = self._database.rows(_LIST, (project, kind, after or "", limit))
        return [Resource(*row) for row in rows]

    def delete(self, project: ProjectRef, kind: str, name: str) -> bool:
        """Delete a resource; False if there was none."""
        values = (project, kind, name)
        return self._database.write(lambda c: c.execute(_DELETE, values).rowcount > 0)
