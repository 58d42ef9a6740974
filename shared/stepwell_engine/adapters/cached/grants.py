"""Grants, remembered."""

from stepwell_engine.adapters.cached.answers import Answers
from stepwell_engine.ports import Grant, Grants


class CachedGrants:
    """The Grants port over another adapter of it (see answers)."""

    def __init__(self, inner: Grants) -> None:
        self._inner = inner
        self._answers = Answers()

    def put(self, grant: Grant) -> None:
        """A change."""
        self._answers.change(lambda: self._inner.put(grant))

    def get(self, token_hash: str) -> Grant | None:
        """Remembered."""
        return self._answers.ask((token_hash,), lambda: self._inner.get(token_hash))
