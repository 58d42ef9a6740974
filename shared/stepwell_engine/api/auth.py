"""From an Authorization header to an actor who may do what the route asks for."""

from stepwell_engine.errors import Problem
from stepwell_engine.service.projects.identity import Actor, Identity, Permission


def bearer(header: str | None) -> str:
    """The token of an Authorization header. Problem `unauthenticated`."""
    if not header:
        raise Problem("unauthenticated", "send a token: Authorization: Bearer <token>")
    scheme, _, token = header.strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Problem(
            "unauthenticated", "the Authorization header must have the form Bearer <token>"
        )
    return token.strip()


def admit(identity: Identity, header: str | None, permission: Permission, ref: str) -> Actor:
    """Whoever sends this header, if they may do this in the project.

    Problem: `unauthenticated`, then `not_found`, then `forbidden` (keys: forbidden at once).
    """
    actor = identity.identify(bearer(header))
    identity.authorize(actor, permission, ref)
    return actor
