"""What a project's steps use, by kind and name: queues, functions, the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stepwell_engine.core.values.units import EpochMs, Ms, ProjectRef


@dataclass(frozen=True, slots=True)
class Resource:
    """A named thing of the user's. `kind`: queue, function, database (named `database`).

    `config` is its JSON without secrets; `sealed` the secret part, sealed.
    """

    project: ProjectRef
    kind: str
    name: str
    config: bytes
    sealed: str | None
    created_at: EpochMs


class Resources(Protocol):
    """The resources of every project."""

    def put(self, resource: Resource) -> None:
        """Create or replace a resource."""
        ...

    def get(
        self, project: ProjectRef, kind: str, name: str, within: Ms | None = None
    ) -> Resource | None:
        """A resource, or None.

        `within` (ms) bounds the wait for a store elsewhere: Unavailable if it takes longer.
        """
        ...

    def list(
        self, project: ProjectRef, kind: str, after: str | None, limit: int
    ) -> Sequence[Resource]:
        """By name, with names above `after`."""
        ...

    def delete(self, project: ProjectRef, kind: str, name: str) -> bool:
        """False if there was none."""
        ...
