"""Grants: who a bearer token is."""

from dataclasses import dataclass
from typing import Literal, Protocol

from stepwell_engine.core.values.units import EpochMs, ProjectRef


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
    project: ProjectRef | None = None
    expires_at: EpochMs | None = None


class Grants(Protocol):
    """Who may come in, by the hash of a token."""

    def put(self, grant: Grant) -> None:
        """Create or replace a grant."""
        ...

    def get(self, token_hash: str) -> Grant | None:
        """A grant, or None; whether it has expired is the caller's to judge."""
        ...
