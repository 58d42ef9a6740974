"""Resources in memory."""

import threading
from collections.abc import Sequence

from stepwell_engine.core.values.units import Ms, ProjectRef
from stepwell_engine.ports import Resource


class MemoryResources:
    """The Resources port. Nothing outlives the object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._resources: dict[tuple[str, str, str], Resource] = {}

    def put(self, resource: Resource) -> None:
        """Create or replace a resource."""
        with self._lock:
            self._resources[resource.project, resource.kind, resource.name] = resource

    def get(
        self,
        project: ProjectRef,
        kind: str,
        name: str,
        within: Ms | None = None,  # noqa: ARG002
    ) -> Resource | None:
        """A resource, or None."""
        with self._lock:
            return self._resources.get((project, kind, name))

    def list(
        self, project: ProjectRef, kind: str, after: str | None, limit: int
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

    def delete(self, project: ProjectRef, kind: str, name: str) -> bool:
        """Delete a resource; False if there was none."""
        with self._lock:
            return self._resources.pop((project, kind, name), None) is not None
