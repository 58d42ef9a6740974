"""Projects in DynamoDB's control table."""

from stepwell_engine.adapters.dynamodb.client import DynamoDB
from stepwell_engine.adapters.dynamodb.control import ControlTable
from stepwell_engine.adapters.dynamodb.models import ProjectItem
from stepwell_engine.core.values.units import ProjectRef
from stepwell_engine.ports import Project


class DynamoProjects:
    """The Projects port on a control table (see models)."""

    def __init__(self, database: DynamoDB, table: str) -> None:
        self._control = ControlTable(database, table)

    def put(self, project: Project) -> None:
        """Create or replace a project."""
        item = ProjectItem(
            partition=f"p#{project.ref}",
            name="p",
            organization=project.organization,
            created_at=project.created_at,
        )
        self._control.put(item)

    def get(self, ref: ProjectRef) -> Project | None:
        """A project, or None."""
        item = self._control.find(ProjectItem, f"p#{ref}", "p")
        return None if item is None else Project(ref, item.organization, item.created_at)
