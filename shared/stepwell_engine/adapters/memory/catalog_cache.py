"""A catalog that remembers what every step and request asks for.

Only for a process that is the only one on its database, as the embedded host is: it hears of
every change, since every change goes through it.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from stepwell_engine.ports import Catalog, Grant, Project, Published, Resource

T = TypeVar("T")
_MOST: Final = 1_000  # answers; all are dropped when they are more
_NOTHING: Final = object()


class CachedCatalog:
    """The Catalog port over another. A change drops every answer remembered."""

    def __init__(self, inner: Catalog) -> None:
        self._inner = inner
        self._lock = threading.Lock()
        self._changes = 0
        self._answers: dict[tuple[str, ...], object] = {}

    def put_project(self, project: Project) -> None:
        """Changes the catalog."""
        self._change(lambda: self._inner.put_project(project))

    def project(self, ref: str) -> Project | None:
        """Remembered."""
        return self._ask(("project", ref), lambda: self._inner.project(ref))

    def put_grant(self, grant: Grant) -> None:
        """Changes the catalog."""
        self._change(lambda: self._inner.put_grant(grant))

    def grant(self, token_hash: str) -> Grant | None:
        """Remembered."""
        return self._ask(("grant", token_hash), lambda: self._inner.grant(token_hash))

    def publish(
        self, project: str, workflow: str, document: bytes, enabled: bool, now: int
    ) -> Published:
        """Changes the catalog."""
        return self._change(lambda: self._inner.publish(project, workflow, document, enabled, now))

    def version(self, project: str, workflow: str, version: int) -> Published | None:
        """As it stands."""
        return self._inner.version(project, workflow, version)

    def newest(self, project: str, workflow: str) -> Published | None:
        """As it stands."""
        return self._inner.newest(project, workflow)

    def newest_enabled(self, project: str, workflow: str) -> Published | None:
        """Remembered."""
        return self._ask(
            ("enabled", project, workflow), lambda: self._inner.newest_enabled(project, workflow)
        )

    def workflows(self, project: str, after: str | None, limit: int) -> Sequence[Published]:
        """As it stands."""
        return self._inner.workflows(project, after, limit)

    def set_enabled(self, project: str, workflow: str, enabled: bool) -> bool:
        """Changes the catalog."""
        return self._change(lambda: self._inner.set_enabled(project, workflow, enabled))

    def put_resource(self, resource: Resource) -> None:
        """Changes the catalog."""
        self._change(lambda: self._inner.put_resource(resource))

    def resource(self, project: str, kind: str, name: str) -> Resource | None:
        """Remembered."""
        return self._ask(
            ("resource", project, kind, name), lambda: self._inner.resource(project, kind, name)
        )

    def resources(
        self, project: str, kind: str, after: str | None, limit: int
    ) -> Sequence[Resource]:
        """As it stands."""
        return self._inner.resources(project, kind, after, limit)

    def drop_resource(self, project: str, kind: str, name: str) -> bool:
        """Changes the catalog."""
        return self._change(lambda: self._inner.drop_resource(project, kind, name))

    def _ask(self, question: tuple[str, ...], read: Callable[[], T]) -> T:
        answer = self._answers.get(question, _NOTHING)
        if answer is not _NOTHING:
            return answer  # type: ignore[return-value]  # what this very read returned
        changes = self._changes
        found = read()
        with self._lock:
            # A change since may have made it old, before it was even remembered.
            if changes == self._changes and found is not None:
                if len(self._answers) >= _MOST:
                    self._answers = {}
                self._answers[question] = found
        return found

    def _change(self, write: Callable[[], T]) -> T:
        try:
            return write()
        finally:  # also a write that failed may have happened
            with self._lock:
                self._changes += 1
                self._answers = {}
