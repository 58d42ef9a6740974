"""What a project consists of: grants, workflow versions, resources, secrets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Project:
    """A project of an organization."""

    ref: str
    organization: str
    created_at: int


@dataclass(frozen=True, slots=True)
class Grant:
    """Who a bearer token is. `token_hash` is its SHA-256 in hex; the token itself is not kept.

    `kind`: `session` (a member's), `publishable` or `secret` (a project's keys).
    `role` (owner, admin, developer, viewer) for sessions, `project` for keys.
    """

    token_hash: str
    kind: Literal["session", "publishable", "secret"]
    organization: str
    role: str | None = None
    project: str | None = None
    expires_at: int | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """A stored version of a workflow. `document` is the body as published, its secrets sealed."""

    project: str
    workflow: str
    version: int
    enabled: bool
    created_at: int
    document: bytes
    format: int = 1


@dataclass(frozen=True, slots=True)
class Resource:
    """A named thing of the user's. `kind`: queue, function, database (named `database`).

    `config` is its JSON without secrets; `sealed` the secret part, sealed.
    """

    project: str
    kind: str
    name: str
    config: bytes
    sealed: str | None
    created_at: int


class Catalog(Protocol):
    """Projects, grants, workflow versions, resources: what changes seldom and is read often."""

    def put_project(self, project: Project) -> None: ...

    def project(self, ref: str) -> Project | None: ...

    def put_grant(self, grant: Grant) -> None: ...

    def grant(self, token_hash: str) -> Grant | None: ...

    def publish(
        self, project: str, workflow: str, document: bytes, enabled: bool, now: int
    ) -> Published:
        """Store version max + 1, at once or not at all, under any concurrency."""
        ...

    def version(self, project: str, workflow: str, version: int) -> Published | None: ...

    def newest(self, project: str, workflow: str) -> Published | None: ...

    def newest_enabled(self, project: str, workflow: str) -> Published | None: ...

    def workflows(self, project: str, after: str | None, limit: int) -> Sequence[Published]:
        """The newest version of each workflow, by name, with names above `after`."""
        ...

    def set_enabled(self, project: str, workflow: str, enabled: bool) -> bool:
        """Set the flag on every version, at once; False if there is none."""
        ...

    def put_resource(self, resource: Resource) -> None: ...

    def resource(self, project: str, kind: str, name: str) -> Resource | None: ...

    def resources(
        self, project: str, kind: str, after: str | None, limit: int
    ) -> Sequence[Resource]:
        """By name, with names above `after`."""
        ...

    def drop_resource(self, project: str, kind: str, name: str) -> bool:
        """False if there was none."""
        ...


class Secrets(Protocol):
    """Seals secrets; what is stored is sealed text only."""

    def seal(self, plain: str, project: str) -> str: ...

    def open(self, sealed: str, project: str) -> str:
        """ValueError if it was sealed for another project, with another key, or is damaged."""
        ...
