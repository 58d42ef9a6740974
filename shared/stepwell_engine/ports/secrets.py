"""Sealing what must not be readable in a store."""

from typing import Protocol


class Secrets(Protocol):
    """Seals secrets; what is stored is sealed text only."""

    def seal(self, plain: str, project: str) -> str:
        """Sealed text. TooLong for a text that cannot be sealed."""
        ...

    def open(self, sealed: str, project: str) -> str:
        """ValueError if it was sealed for another project, with another key, or is damaged."""
        ...
