"""Grants in memory."""

import threading

from stepwell_engine.ports import Grant


class MemoryGrants:
    """The Grants port. Nothing outlives the object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._grants: dict[str, Grant] = {}

    def put(self, grant: Grant) -> None:
        """Create or replace a grant."""
        with self._lock:
            self._grants[grant.token_hash] = grant

    def get(self, token_hash: str) -> Grant | None:
        """A grant, or None; whether it has expired is the caller's to judge."""
        with self._lock:
            return self._grants.get(token_hash)
