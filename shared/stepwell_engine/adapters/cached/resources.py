"""Resources, remembered."""

from collections.abc import Sequence

from stepwell_engine.adapters.cached.answers import Answers
from stepwell_engine.core.values.units import Ms, ProjectRef
from stepwell_engine.ports import Resource, Resources


class CachedResources:
    """The Resources port over another adapter of it (see answers)."""

    def __init__(self, inner: Resources) -> None:
        self._inner = inner
        self._answers = Answers()

    def put(self, resource: Resource) -> None:
        """A change."""
        self._answers.change(lambda: self._inner.put(resource))

    def get(
        self, project: ProjectRef, kind: str, name: str, within: Ms | None = None
    ) -> Resource | None:
        """Remembered."""
        return self._answers.ask(
            (project, kind, name), lambda: self._inner.get(project, kind, name, within)
        )

    def list(
        self, project: ProjectRef, kind: str, after: str | None, limit: int
    ) -> Sequence[Resource]:
        """As they stand."""
        return self._inner.list(project, kind, after, limit)

    def delete(self, project: ProjectRef, kind: str, name: str) -> bool:
        """A change."""
        return self._answers.change(lambda: self._inner.delete(project, kind, name))
