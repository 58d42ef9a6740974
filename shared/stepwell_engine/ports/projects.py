"""Projects: whose workflows, resources and runs they are."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Project:
    """A project of an organization."""

    ref: str
    organization: str
    created_at: int


class Projects(Protocol):
    """The projects of an installation."""

    def put(self, project: Project) -> None:
        """Create or replace a project."""
        ...

    def get(self, ref: str) -> Project | None:
        """A project, or None."""
        ...
