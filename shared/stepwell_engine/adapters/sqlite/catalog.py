"""Projects, grants, workflow versions and resources in SQLite."""

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from stepwell_engine.adapters.sqlite.database import Database
from stepwell_engine.errors import NewerFormat
from stepwell_engine.limits import FORMAT
from stepwell_engine.ports import Grant, Project, Published, Resource

Row = tuple[Any, ...]

# Texts are put together from the constants here alone; values are always bound.
# ruff: noqa: S608
_PUT_PROJECT: Final = (
    "INSERT OR REPLACE INTO projects (ref, organization, created_at) VALUES (?, ?, ?)"
)
_PROJECT: Final = "SELECT ref, organization, created_at FROM projects WHERE ref = ?"

_GRANT_COLUMNS: Final = "token_hash, kind, organization, role, project, expires_at"
_PUT_GRANT: Final = f"INSERT OR REPLACE INTO grants ({_GRANT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
_GRANT: Final = f"SELECT {_GRANT_COLUMNS} FROM grants WHERE token_hash = ?"

_COLUMNS: Final = "project, workflow, version, enabled, created_at, document, format"
_VERSIONS: Final = f"SELECT {_COLUMNS} FROM published WHERE project = ? AND workflow = ?"
_VERSION: Final = f"{_VERSIONS} AND version = ?"
_NEWEST: Final = f"{_VERSIONS} ORDER BY version DESC LIMIT 1"
_NEWEST_ENABLED: Final = f"{_VERSIONS} AND enabled ORDER BY version DESC LIMIT 1"
_PUBLISH: Final = f"""
    INSERT INTO published ({_COLUMNS})
    SELECT ?, ?, coalesce(max(version), 0) + 1, ?, ?, ?, ? FROM published
    WHERE project = ? AND workflow = ?
    RETURNING version"""
_WORKFLOWS: Final = f"""
    SELECT {_COLUMNS} FROM published
    WHERE project = ? AND (workflow, version) IN (
        SELECT workflow, max(version) FROM published WHERE project = ? AND workflow > ?
        GROUP BY workflow) AND format <= {FORMAT}
    ORDER BY workflow LIMIT ?"""
_HIGHEST_FORMAT: Final = "SELECT max(format) FROM published WHERE project = ? AND workflow = ?"
_SET_ENABLED: Final = "UPDATE published SET enabled = ? WHERE project = ? AND workflow = ?"

_RESOURCE_COLUMNS: Final = "project, kind, name, config, sealed, created_at"
_PUT_RESOURCE: Final = (
    f"INSERT OR REPLACE INTO resources ({_RESOURCE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
)
_RESOURCES: Final = f"SELECT {_RESOURCE_COLUMNS} FROM resources WHERE project = ? AND kind = ?"
_RESOURCE: Final = f"{_RESOURCES} AND name = ?"
_RESOURCES_AFTER: Final = f"{_RESOURCES} AND name > ? ORDER BY name LIMIT ?"
_DROP_RESOURCE: Final = "DELETE FROM resources WHERE project = ? AND kind = ? AND name = ?"


class SqliteCatalog:
    """The Catalog port on a Database.

    Versions of a newer format raise NewerFormat where they are asked for; a list leaves them out.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def put_project(self, project: Project) -> None:
        """Create or replace a project."""
        values = (project.ref, project.organization, project.created_at)
        self._database.write(lambda connection: connection.execute(_PUT_PROJECT, values))

    def project(self, ref: str) -> Project | None:
        """A project, or None."""
        row = self._row(_PROJECT, (ref,))
        return None if row is None else Project(*row)

    def put_grant(self, grant: Grant) -> None:
        """Create or replace a grant."""
        values = (
            grant.token_hash,
            grant.kind,
            grant.organization,
            grant.role,
            grant.project,
            grant.expires_at,
        )
        self._database.write(lambda connection: connection.execute(_PUT_GRANT, values))

    def grant(self, token_hash: str) -> Grant | None:
        """A grant, or None; whether it has expired is the caller's to judge."""
        row = self._row(_GRANT, (token_hash,))
        return None if row is None else Grant(*row)

    def publish(
        self, project: str, workflow: str, document: bytes, enabled: bool, now: int
    ) -> Published:
        """Store version max + 1."""
        values = (project, workflow, enabled, now, document, FORMAT, project, workflow)

        def operation(connection: sqlite3.Connection) -> Published:
            version: int = connection.execute(_PUBLISH, values).fetchone()[0]
            return Published(project, workflow, version, enabled, now, document, FORMAT)

        return self._database.write(operation)

    def version(self, project: str, workflow: str, version: int) -> Published | None:
        """One version, or None."""
        return self._published(_VERSION, (project, workflow, version))

    def newest(self, project: str, workflow: str) -> Published | None:
        """The highest version, or None."""
        return self._published(_NEWEST, (project, workflow))

    def newest_enabled(self, project: str, workflow: str) -> Published | None:
        """The highest enabled version, or None."""
        return self._published(_NEWEST_ENABLED, (project, workflow))

    def workflows(self, project: str, after: str | None, limit: int) -> Sequence[Published]:
        """The newest version of each workflow, by name."""
        rows = self._rows(_WORKFLOWS, (project, project, after or "", limit))
        return [_published(row) for row in rows]

    def set_enabled(self, project: str, workflow: str, enabled: bool) -> bool:
        """Set the flag on every version; NewerFormat, and nothing set, if one is not ours."""

        def operation(connection: sqlite3.Connection) -> bool:
            highest = connection.execute(_HIGHEST_FORMAT, (project, workflow)).fetchone()[0]
            if highest is not None and highest > FORMAT:
                raise NewerFormat(f"workflow {workflow}", highest, FORMAT)
            return connection.execute(_SET_ENABLED, (enabled, project, workflow)).rowcount > 0

        return self._database.write(operation)

    def put_resource(self, resource: Resource) -> None:
        """Create or replace a resource."""
        values = (
            resource.project,
            resource.kind,
            resource.name,
            resource.config,
            resource.sealed,
            resource.created_at,
        )
        self._database.write(lambda connection: connection.execute(_PUT_RESOURCE, values))

    def resource(self, project: str, kind: str, name: str) -> Resource | None:
        """A resource, or None."""
        row = self._row(_RESOURCE, (project, kind, name))
        return None if row is None else Resource(*row)

    def resources(
        self, project: str, kind: str, after: str | None, limit: int
    ) -> Sequence[Resource]:
        """By name, with names above `after`."""
        rows = self._rows(_RESOURCES_AFTER, (project, kind, after or "", limit))
        return [Resource(*row) for row in rows]

    def drop_resource(self, project: str, kind: str, name: str) -> bool:
        """Delete a resource; False if there was none."""
        values = (project, kind, name)
        return self._database.write(lambda c: c.execute(_DROP_RESOURCE, values).rowcount > 0)

    def _rows(self, sql: str, values: Row) -> list[Row]:
        return self._database.read(lambda connection: connection.execute(sql, values).fetchall())

    def _row(self, sql: str, values: Row) -> Row | None:
        return next(iter(self._rows(sql, values)), None)

    def _published(self, sql: str, values: Row) -> Published | None:
        row = self._row(sql, values)
        return None if row is None else _published(row)


def _published(row: Row) -> Published:
    project, workflow, version, enabled, created_at, document, written = row
    if written > FORMAT:
        raise NewerFormat(f"version {version} of workflow {workflow}", written, FORMAT)
    return Published(project, workflow, version, bool(enabled), created_at, document, written)
