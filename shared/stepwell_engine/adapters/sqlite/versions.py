"""Workflow versions in SQLite."""

import sqlite3
from collections.abc import Sequence
from typing import Final

from stepwell_engine.adapters.sqlite.database import Database, Row
from stepwell_engine.core.values.units import EpochMs, ProjectRef, WorkflowName
from stepwell_engine.errors import NewerFormat
from stepwell_engine.limits import FORMAT
from stepwell_engine.ports import Published

# Texts are put together from the constants here alone; values are always bound.
# ruff: noqa: S608
_COLUMNS: Final = "project, workflow, version, enabled, created_at, document, format"
_VERSIONS: Final = f"SELECT {_COLUMNS} FROM published WHERE project = ? AND workflow = ?"
_GET: Final = f"{_VERSIONS} AND version = ?"
_NEWEST: Final = f"{_VERSIONS} ORDER BY version DESC LIMIT 1"
_NEWEST_ENABLED: Final = f"{_VERSIONS} AND enabled ORDER BY version DESC LIMIT 1"
_PUBLISH: Final = f"""
    INSERT INTO published ({_COLUMNS})
    SELECT ?, ?, coalesce(max(version), 0) + 1, ?, ?, ?, ? FROM published
    WHERE project = ? AND workflow = ?
    RETURNING version"""
_LIST: Final = f"""
    SELECT {_COLUMNS} FROM published
    WHERE project = ? AND (workflow, version) IN (
        SELECT workflow, max(version) FROM published WHERE project = ? AND workflow > ?
        GROUP BY workflow) AND format <= {FORMAT}
    ORDER BY workflow LIMIT ?"""
_HIGHEST_FORMAT: Final = "SELECT max(format) FROM published WHERE project = ? AND workflow = ?"
_SET_ENABLED: Final = "UPDATE published SET enabled = ? WHERE project = ? AND workflow = ?"


class SqliteVersions:
    """The Versions port on a Database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def publish(
        self,
        project: ProjectRef,
        workflow: WorkflowName,
        document: bytes,
        enabled: bool,
        now: EpochMs,
    ) -> Published:
        """Store version max + 1."""
        values = (project, workflow, enabled, now, document, FORMAT, project, workflow)

        def operation(connection: sqlite3.Connection) -> Published:
            version: int = connection.execute(_PUBLISH, values).fetchone()[0]
            return Published(project, workflow, version, enabled, now, document, FORMAT)

        return self._database.write(operation)

    def get(self, project: ProjectRef, workflow: WorkflowName, version: int) -> Published | None:
        """One version, or None."""
        return self._published(_GET, (project, workflow, version))

    def newest(self, project: ProjectRef, workflow: WorkflowName) -> Published | None:
        """The highest version, or None."""
        return self._published(_NEWEST, (project, workflow))

    def newest_enabled(self, project: ProjectRef, workflow: WorkflowName) -> Published | None:
        """The highest enabled version, or None."""
        return self._published(_NEWEST_ENABLED, (project, workflow))

    def list(self, project: ProjectRef, after: str | None, limit: int) -> Sequence[Published]:
        """The newest version of each workflow, by name."""
        rows = self._database.rows(_LIST, (project, project, after or "", limit))
        return [_published(row) for row in rows]

    def set_enabled(self, project: ProjectRef, workflow: WorkflowName, enabled: bool) -> bool:
        """Set the flag on every version; NewerFormat, and nothing set, if one is not ours."""

        def operation(connection: sqlite3.Connection) -> bool:
            highest = connection.execute(_HIGHEST_FORMAT, (project, workflow)).fetchone()[0]
            if highest is not None and highest > FORMAT:
                raise NewerFormat(f"workflow {workflow}", highest, FORMAT)
            return connection.execute(_SET_ENABLED, (enabled, project, workflow)).rowcount > 0

        return self._database.write(operation)

    def _published(self, sql: str, values: Row) -> Published | None:
        row = self._database.row(sql, values)
        return None if row is None else _published(row)


def _published(row: Row) -> Published:
    project, workflow, version, enabled, created_at, document, written = row
    if written > FORMAT:
        raise NewerFormat(f"version {version} of workflow {workflow}", written, FORMAT)
    return Published(project, workflow, version, bool(enabled), created_at, document, written)
