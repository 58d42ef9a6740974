"""Projects, remembered."""

from stepwell_engine.adapters.cached.answers import Answers
from stepwell_engine.core.values.units import ProjectRef
from stepwell_engine.ports import Project, Projects


class CachedProjects:
    """The Projects port over another adapter of it (see answers)."""

    def __init__(self, inner: Projects) -> None:
        self._inner = inner
        self._answers = Answers()

    def put(self, project: Project) -> None:
        """A change."""
        self._answers.change(lambda: self._inner.put(project))

    def get(self, ref: ProjectRef) -> Project | None:
        """Remembered."""
        return self._answers.ask((ref,), lambda: self._inner.get(ref))
