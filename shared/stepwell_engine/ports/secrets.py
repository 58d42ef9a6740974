"""Sealing what must not be readable in a store."""

from typing import Protocol

from stepwell_engine.core.values.units import Ms, ProjectRef


class Secrets(Protocol):
    """Seals secrets; what is stored is sealed text only."""

    def seal(self, plain: str, project: ProjectRef) -> str:
        """Sealed text. TooLong for a text that cannot be sealed."""
        ...

    def open(self, sealed: str, project: ProjectRef, within: Ms | None = None) -> str:
        """ValueError if it was sealed for another project, with another key, or is damaged.

        `within` (ms) bounds the wait for who keeps the key: Unavailable if it takes longer.
        """
        ...
