"""Projects in memory."""

import threading

from stepwell_engine.core.values.units import ProjectRef
from stepwell_engine.ports import Project


class MemoryProjects:
    """The Projects port. Nothing outlives the object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._projects: dict[str, Project] = {}

    def put(self, project: Project) -> None:
        """Create or replace a project."""
        with self._lock:
            self._projects[project.ref] = project

    def get(self, ref: ProjectRef) -> Project | None:
        """A project, or None."""
        with self._lock:
            return self._projects.get(ref)
