"""Workflow versions in memory."""

import threading
from collections.abc import Sequence
from dataclasses import replace

from stepwell_engine.core.values.units import EpochMs, ProjectRef, WorkflowName
from stepwell_engine.limits import FORMAT
from stepwell_engine.ports import Published


class MemoryVersions:
    """The Versions port. Nothing outlives the object, so no newer format is ever met."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._versions: dict[tuple[str, str], list[Published]] = {}

    def publish(
        self,
        project: ProjectRef,
        workflow: WorkflowName,
        document: bytes,
        enabled: bool,
        now: EpochMs,
    ) -> Published:
        """Store version max + 1."""
        with self._lock:
            versions = self._versions.setdefault((project, workflow), [])
            number = len(versions) + 1
            published = Published(project, workflow, number, enabled, now, document, FORMAT)
            versions.append(published)
            return published

    def get(self, project: ProjectRef, workflow: WorkflowName, version: int) -> Published | None:
        """One version, or None."""
        return next((one for one in self._of(project, workflow) if one.version == version), None)

    def newest(self, project: ProjectRef, workflow: WorkflowName) -> Published | None:
        """The highest version, or None."""
        return next(reversed(self._of(project, workflow)), None)

    def newest_enabled(self, project: ProjectRef, workflow: WorkflowName) -> Published | None:
        """The highest enabled version, or None."""
        return next((one for one in reversed(self._of(project, workflow)) if one.enabled), None)

    def set_enabled(self, project: ProjectRef, workflow: WorkflowName, enabled: bool) -> bool:
        """Set the flag on every version."""
        with self._lock:
            versions = self._versions.get((project, workflow))
            if versions is None:
                return False
            versions[:] = [replace(one, enabled=enabled) for one in versions]
            return True

    def list(self, project: ProjectRef, after: str | None, limit: int) -> Sequence[Published]:
        """The newest version of each workflow, by name."""
        with self._lock:
            names = sorted(
                name
                for owner, name in self._versions
                if owner == project and (after is None or name > after)
            )
            return [self._versions[project, name][-1] for name in names[:limit]]

    def _of(self, project: ProjectRef, workflow: WorkflowName) -> Sequence[Published]:
        with self._lock:
            return tuple(self._versions.get((project, workflow), ()))
