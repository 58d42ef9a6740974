"""A host whose SQLite file may not grow while the file `full` lies beside it."""

from typing import Any, Final

from stepwell_engine.adapters.sqlite.database import Database

_MOST: Final = 1 << 30  # pages


def install() -> None:
    """Have SQLite look before each transaction: what a full disk does, on any system."""
    transact = Database._transact

    def limited(self: Database, batch: Any) -> bool:
        full = self._path.with_name("full").exists()
        # Never fewer than there are.
        self._writer.execute(f"PRAGMA max_page_count = {1 if full else _MOST}")
        return transact(self, batch)

    Database._transact = limited  # type: ignore[method-assign]
