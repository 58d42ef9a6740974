"""Projects: whose workflows, resources and runs they are."""

from dataclasses import dataclass
from typing import Protocol

from stepwell_engine.core.values.units import EpochMs, ProjectRef


@dataclass(frozen=True, slots=True)
class Project:
    """A project of an organization."""

    ref: ProjectRef
    organization: str
    created_at: EpochMs


class Projects(Protocol):
    """The projects of an installation."""

    def put(self, project: Project) -> None:
        """Create or replace a project."""
        ...

    def get(self, ref: ProjectRef) -> Project | None:
        """A project, or None."""
        ...
