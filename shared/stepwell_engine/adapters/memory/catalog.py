"""Projects, grants, workflow versions and resources in memory."""

import threading
from collections.abc import Sequence
from dataclasses import replace

from stepwell_engine.limits import FORMAT
from stepwell_engine.ports import Grant, Project, Published, Resource


class MemoryCatalog:
    """The Catalog port. Nothing outlives the object, so no newer format is ever met."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._projects: dict[str, Project] = {}
        self._grants: dict[str, Grant] = {}
        self._versions: dict[tuple[str, str], list[Published]] = {}
        self._resources: dict[tuple[str, str, str], Resource] = {}

    def put_project(self, project: Project) -> None:
        """Create or replace a project."""
        with self._lock:
            self._projects[project.ref] = project

    def project(self, ref: str) -> Project | None:
        """A project, or None."""
        with self._lock:
            return self._projects.get(ref)

    def put_grant(self, grant: Grant) -> None:
        """Create or replace a grant."""
        with self._lock:
            self._grants[grant.token_hash] = grant

    def grant(self, token_hash: str) -> Grant | None:
        """A grant, or None; whether it has expired is the caller's to judge."""
        with self._lock:
            return self._grants.get(token_hash)

    def publish(
        self, project: str, workflow: str, document: bytes, enabled: bool, now: int
    ) -> Published:
        """Store version max + 1."""
        with self._lock:
            versions = self._versions.setdefault((project, workflow), [])
            number = len(versions) + 1
            published = Published(project, workflow, number, enabled, now, document, FORMAT)
            versions.append(published)
            return published

    def version(self, project: str, workflow: str, version: int) -> Published | None:
        """One version, or None."""
        return next((one for one in self._of(project, workflow) if one.version == version), None)

    def newest(self, project: str, workflow: str) -> Published | None:
        """The highest version, or None."""
        return next(reversed(self._of(project, workflow)), None)

    def newest_enabled(self, project: str, workflow: str) -> Published | None:
        """The highest enabled version, or None."""
        return next((one for one in reversed(self._of(project, workflow)) if one.enabled), None)

    def workflows(self, project: str, after: str | None, limit: int) -> Sequence[Published]:
        """The newest version of each workflow, by name."""
        with self._lock:
            names = sorted(
                name
                for owner, name in self._versions
                if owner == project and (after is None or name > after)
            )
            return [self._versions[project, name][-1] for name in names[:limit]]

    def set_enabled(self, project: str, workflow: str, enabled: bool) -> bool:
        """Set the flag on every version."""
        with self._lock:
            versions = self._versions.get((project, workflow))
            if versions is None:
                return False
            versions[:] = [replace(one, enabled=enabled) for one in versions]
            return True

    def put_resource(self, resource: Resource) -> None:
        """Create or replace a resource."""
        with self._lock:
            self._resources[resource.project, resource.kind, resource.name] = resource

    def resource(self, project: str, kind: str, name: str) -> Resource | None:
        """A resource, or None."""
        with self._lock:
            return self._resources.get((project, kind, name))

    def resources(
        self, project: str, kind: str, after: str | None, limit: int
    ) -> Sequence[Resource]:
        """By name, with names above `after`."""
        with self._lock:
            found = [
                one
                for one in self._resources.values()
                if (one.project, one.kind) == (project, kind)
                and (after is None or one.name > after)
            ]
        return sorted(found, key=lambda one: one.name)[:limit]

    def drop_resource(self, project: str, kind: str, name: str) -> bool:
        """Delete a resource; False if there was none."""
        with self._lock:
            return self._resources.pop((project, kind, name), None) is not None

    def _of(self, project: str, workflow: str) -> Sequence[Published]:
        with self._lock:
            return tuple(self._versions.get((project, workflow), ()))
