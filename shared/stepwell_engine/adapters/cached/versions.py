"""Versions, remembered."""

from collections.abc import Sequence

from stepwell_engine.adapters.cached.answers import Answers
from stepwell_engine.core.values.units import EpochMs, ProjectRef, WorkflowName
from stepwell_engine.ports import Published, Versions


class CachedVersions:
    """The Versions port over another adapter of it (see answers)."""

    def __init__(self, inner: Versions) -> None:
        self._inner = inner
        self._answers = Answers()

    def publish(
        self,
        project: ProjectRef,
        workflow: WorkflowName,
        document: bytes,
        enabled: bool,
        now: EpochMs,
    ) -> Published:
        """A change."""
        return self._answers.change(
            lambda: self._inner.publish(project, workflow, document, enabled, now)
        )

    def get(self, project: ProjectRef, workflow: WorkflowName, version: int) -> Published | None:
        """As it stands."""
        return self._inner.get(project, workflow, version)

    def newest(self, project: ProjectRef, workflow: WorkflowName) -> Published | None:
        """As it stands."""
        return self._inner.newest(project, workflow)

    def newest_enabled(self, project: ProjectRef, workflow: WorkflowName) -> Published | None:
        """Remembered."""
        return self._answers.ask(
            (project, workflow), lambda: self._inner.newest_enabled(project, workflow)
        )

    def list(self, project: ProjectRef, after: str | None, limit: int) -> Sequence[Published]:
        """As they stand."""
        return self._inner.list(project, after, limit)

    def set_enabled(self, project: ProjectRef, workflow: WorkflowName, enabled: bool) -> bool:
        """A change."""
        return self._answers.change(lambda: self._inner.set_enabled(project, workflow, enabled))
