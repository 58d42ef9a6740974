"""The published versions of workflows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stepwell_engine.core.values.units import EpochMs, ProjectRef, WorkflowName


@dataclass(frozen=True, slots=True)
class Published:
    """A stored version of a workflow. `document` is the body as published, its secrets sealed."""

    project: ProjectRef
    workflow: WorkflowName
    version: int
    enabled: bool
    created_at: EpochMs
    document: bytes
    format: int = 1


class Versions(Protocol):
    """The versions of every workflow. None of them changes but for its flag.

    A version of a newer format raises NewerFormat where it is asked for; a list leaves it out.
    """

    def publish(
        self,
        project: ProjectRef,
        workflow: WorkflowName,
        document: bytes,
        enabled: bool,
        now: EpochMs,
    ) -> Published:
        """Store version max + 1, at once or not at all, under any concurrency."""
        ...

    def get(self, project: ProjectRef, workflow: WorkflowName, version: int) -> Published | None:
        """One version, or None."""
        ...

    def newest(self, project: ProjectRef, workflow: WorkflowName) -> Published | None:
        """The highest version, or None."""
        ...

    def newest_enabled(self, project: ProjectRef, workflow: WorkflowName) -> Published | None:
        """The highest enabled version, or None."""
        ...

    def list(self, project: ProjectRef, after: str | None, limit: int) -> Sequence[Published]:
        """The newest version of each workflow, by name, with names above `after`."""
        ...

    def set_enabled(self, project: ProjectRef, workflow: WorkflowName, enabled: bool) -> bool:
        """Set the flag on every version, at once; False if there is none."""
        ...
