"""Projects in SQLite."""

from typing import Final

from stepwell_engine.adapters.sqlite.database import Database
from stepwell_engine.core.values.units import ProjectRef
from stepwell_engine.ports import Project

_PUT: Final = "INSERT OR REPLACE INTO projects (ref, organization, created_at) VALUES (?, ?, ?)"
_GET: Final = "SELECT ref, organization, created_at FROM projects WHERE ref = ?"


class SqliteProjects:
    """The Projects port on a Database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, project: Project) -> None:
        """Create or replace a project."""
        values = (project.ref, project.organization, project.created_at)
        self._database.write(lambda connection: connection.execute(_PUT, values))

    def get(self, ref: ProjectRef) -> Project | None:
        """A project, or None."""
        row = self._database.row(_GET, (ref,))
        return None if row is None else Project(*row)
