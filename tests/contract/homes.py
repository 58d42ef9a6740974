"""The adapters that the contract suite runs on. A new one is one more line in HOMES."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from stepwell_engine.adapters.memory.catalog import MemoryCatalog
from stepwell_engine.adapters.memory.catalog_cache import CachedCatalog
from stepwell_engine.adapters.memory.queues import MemoryQueues
from stepwell_engine.adapters.memory.runs import MemoryRuns
from stepwell_engine.adapters.sqlite.catalog import SqliteCatalog
from stepwell_engine.adapters.sqlite.database import Database
from stepwell_engine.adapters.sqlite.queues import SqliteQueues
from stepwell_engine.adapters.sqlite.runs import SqliteRuns
from stepwell_engine.ports import Catalog, Queues, Runs
from tools.moto_home import DynamoHome


class Home(Protocol):
    """One set of adapters on an empty store."""

    @property
    def runs(self) -> Runs: ...

    @property
    def queues(self) -> Queues: ...

    @property
    def catalog(self) -> Catalog: ...

    def forget(self, run_id: str) -> None:
        """Delete a head, as retention does."""
        ...

    def stored(self, run_id: str) -> object:
        """A head as it is stored, whatever its format; two of them can be compared."""
        ...

    def close(self) -> None: ...


class MemoryHome:
    """Everything in memory."""

    def __init__(self) -> None:
        self.runs = MemoryRuns()
        self.queues = MemoryQueues()
        self.catalog = MemoryCatalog()

    def forget(self, run_id: str) -> None:
        del self.runs._heads[run_id]

    def stored(self, run_id: str) -> object:
        return self.runs._heads[run_id]

    def close(self) -> None:
        """Nothing is open."""


class SqliteHome:
    """Everything in one file."""

    def __init__(self, path: Path) -> None:
        self.database = Database(path)
        self.runs = SqliteRuns(self.database)
        self.queues = SqliteQueues(self.database)
        self.catalog: Catalog = SqliteCatalog(self.database)

    def forget(self, run_id: str) -> None:
        sql = "DELETE FROM heads WHERE run_id = ?"
        self.database.write(lambda connection: connection.execute(sql, (run_id,)))

    def stored(self, run_id: str) -> object:
        sql = "SELECT * FROM heads WHERE run_id = ?"
        return self.database.read(lambda connection: connection.execute(sql, (run_id,)).fetchall())

    def close(self) -> None:
        self.database.close()


class CachedHome(SqliteHome):
    """As in the embedded host: the catalog is remembered."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.catalog = CachedCatalog(self.catalog)


# By name, given a folder of its own.
HOMES: dict[str, Callable[[Path], Home]] = {
    "memory": lambda _: MemoryHome(),
    "sqlite": lambda folder: SqliteHome(folder / "stepwell.db"),
    "cached": lambda folder: CachedHome(folder / "stepwell.db"),
    "dynamodb": lambda _: DynamoHome(),
}

# Those with queues of their own.
WITH_QUEUES = ("memory", "sqlite")

# Those that several threads may use at once; moto's transactions are not isolated between them.
CONCURRENT = ("memory", "sqlite", "cached")
