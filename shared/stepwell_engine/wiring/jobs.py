"""What the embedded host hands to the child process of an isolated attempt."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from stepwell_engine.adapters.runners.attempts import find
from stepwell_engine.adapters.runners.deadline import Deadline
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import Attempt, Deferred
from stepwell_engine.ports import Resource, Resources
from stepwell_engine.settings.embedded import Settings

# Finds its modules as the host found them.
CHILD: Final = (sys.executable, "-m", "stepwell_engine.wiring.isolated")


@dataclass(frozen=True, slots=True)
class Job:
    """`path` is where the host finds modules; `dsn` is that of the embedded PostgreSQL, if it is
    needed, `no_dsn` why there is none.
    """

    settings: Settings
    path: tuple[str, ...]
    dsn: str | None = None
    no_dsn: str = "the embedded PostgreSQL was not started"


class Jobs:
    """Makes them. The embedded PostgreSQL starts and stops with the host, never with a child."""

    def __init__(
        self, settings: Settings, resources: Resources, postgres: Callable[[str], str]
    ) -> None:
        self._settings = settings.model_copy(update={"data": settings.data.absolute()})
        self._resources = resources
        self._postgres = postgres

    def of(self, attempt: Attempt, deadline: Deadline) -> Job | Deferred:
        """The job of an attempt; Deferred if the store does not answer."""
        path = tuple(sys.path)
        if attempt.kind != Kind.SQL or self._settings.dsn is not None:
            return Job(self._settings, path)
        resource = find(self._resources, attempt, deadline, "database", "database")
        if isinstance(resource, Deferred):
            return resource
        if not isinstance(resource, Resource) or resource.sealed is not None:
            return Job(self._settings, path)
        from stepwell_engine.adapters.postgres.cluster import PostgresUnavailable  # noqa: PLC0415

        try:
            return Job(self._settings, path, self._postgres(attempt.project))
        except PostgresUnavailable as error:
            return Job(self._settings, path, no_dsn=str(error))
