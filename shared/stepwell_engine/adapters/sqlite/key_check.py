"""A database knows the key that its secrets are sealed with, by a value sealed with it."""

import sqlite3
from pathlib import Path
from typing import Any, Final

from stepwell_engine.adapters.secrets.sealed import SealedSecrets
from stepwell_engine.adapters.sqlite.database import Database
from stepwell_engine.errors import StoreError

_NAME: Final = "key_check"
_PLAIN: Final = "stepwell"
_PROJECT: Final = ""  # the name of none


def check_key(database: Database, secrets: SealedSecrets, path: Path) -> None:
    """The first key is the right one for good. StoreError for another; `path`: where it was."""
    sealed = secrets.seal(_PLAIN, _PROJECT)

    def first(connection: sqlite3.Connection) -> Any:
        connection.execute(
            "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", (_NAME, sealed)
        )
        row = connection.execute("SELECT value FROM meta WHERE name = ?", (_NAME,)).fetchone()
        return row[0]

    try:
        secrets.open(database.write(first), _PROJECT)
    except ValueError as error:
        raise StoreError(
            f"{path} is not the key that the secrets of this database are sealed with: "
            "put the right one back from a copy"
        ) from error
