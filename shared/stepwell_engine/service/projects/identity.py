"""Who a bearer token is, and what it may do. Tokens are looked up by their hash only."""

import hashlib
import hmac
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from stepwell_engine.core.values.excerpt import excerpt
from stepwell_engine.core.values.units import EpochMs, ProjectRef
from stepwell_engine.errors import Problem
from stepwell_engine.ports import Clock, Grant, Grants, Ids, Project, Projects


class Role(StrEnum):
    """A member's role in an organization."""

    OWNER = "owner"
    ADMIN = "admin"
    DEVELOPER = "developer"
    VIEWER = "viewer"


class Permission(StrEnum):
    """What a route asks for."""

    VIEW = "workflows.view"
    MANAGE = "workflows.manage"
    RUN = "workflows.run"
    ADMINISTER = "administration"


_ADMINISTRATORS = frozenset({Role.OWNER, Role.ADMIN})
_DEVELOPERS = _ADMINISTRATORS | {Role.DEVELOPER}
ALLOWED: Final = {
    Permission.VIEW: frozenset(Role),
    Permission.MANAGE: _DEVELOPERS,
    Permission.RUN: _DEVELOPERS,
    Permission.ADMINISTER: _ADMINISTRATORS,
}

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")
_TOKEN_PARTS: Final = 4  # of 12 letters and digits each


@dataclass(frozen=True, slots=True)
class Actor:
    """Whom a token stands for: a member with a role, or, with role None, a key of `project`."""

    organization: str
    role: Role | None
    project: ProjectRef | None = None


class Identity:
    """Tokens, projects, and who may do what in them."""

    def __init__(self, projects: Projects, grants: Grants, clock: Clock, ids: Ids) -> None:
        self._projects = projects
        self._grants = grants
        self._clock = clock
        self._ids = ids

    def identify(self, token: str) -> Actor:
        """The actor of a bearer token. Problem `unauthenticated`."""
        if _TOKEN.fullmatch(token) is None:
            raise Problem("unauthenticated", "the bearer token is malformed")
        digest = _digest(token)
        grant = self._grants.get(digest)
        if grant is None or not hmac.compare_digest(grant.token_hash, digest):
            raise Problem("unauthenticated", "the bearer token is not known")
        if grant.expires_at is not None and grant.expires_at <= self._clock.now():
            raise Problem("unauthenticated", "the bearer token has expired: sign in again")
        role = Role(grant.role) if grant.kind == "session" and grant.role else None
        return Actor(grant.organization, role, grant.project)

    def authorize(self, actor: Actor, permission: Permission, ref: ProjectRef) -> None:
        """Check that the actor may do this in the project.

        Problem `forbidden`; `not_found` for a project of another organization, or none.
        """
        if actor.role is None:
            raise Problem(
                "forbidden",
                "project keys are not accepted here: use the session token of a member",
            )
        project = self._projects.get(ref) if _NAME.fullmatch(ref) else None
        if project is None or project.organization != actor.organization:
            raise Problem("not_found", f"there is no project {excerpt(ref)}")
        if actor.role not in ALLOWED[permission]:
            needed = ", ".join(role for role in Role if role in ALLOWED[permission])
            raise Problem(
                "forbidden",
                f'this needs the permission {permission}, which the role "{actor.role}" '
                f"does not have (roles that do: {needed})",
            )

    def mint_session(self, organization: str, role: Role, expires_at: EpochMs | None = None) -> str:
        """A new session token of a member, shown this once: only its hash is kept."""
        token = "swt_" + "".join(self._ids.token() for _ in range(_TOKEN_PARTS))
        self._grants.put(
            Grant(
                token_hash=_digest(token),
                kind="session",
                organization=organization,
                role=Role(role),
                expires_at=expires_at,
            )
        )
        return token

    def create_project(self, organization: str, ref: ProjectRef) -> Project:
        """A project; the same again changes nothing.

        Problem `invalid_request` for a malformed name, `conflict` for another organization's ref.
        """
        for what, name in (("project ref", ref), ("organization", organization)):
            if _NAME.fullmatch(name) is None:
                raise Problem(
                    "invalid_request", f"the {what} {excerpt(name)} must match {_NAME.pattern}"
                )
        existing = self._projects.get(ref)
        if existing is not None:
            if existing.organization != organization:
                raise Problem("conflict", f"the project ref {excerpt(ref)} is taken")
            return existing
        project = Project(ref, organization, self._clock.now())
        self._projects.put(project)
        return project


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
