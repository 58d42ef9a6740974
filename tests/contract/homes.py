"""The adapters that the contract suite runs on. A new one is one more line in HOMES."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from stepwell_engine.adapters.cached.grants import CachedGrants
from stepwell_engine.adapters.cached.projects import CachedProjects
from stepwell_engine.adapters.cached.resources import CachedResources
from stepwell_engine.adapters.cached.versions import CachedVersions
from stepwell_engine.adapters.memory.grants import MemoryGrants
from stepwell_engine.adapters.memory.projects import MemoryProjects
from stepwell_engine.adapters.memory.queues import MemoryQueues
from stepwell_engine.adapters.memory.resources import MemoryResources
from stepwell_engine.adapters.memory.runs import MemoryRuns
from stepwell_engine.adapters.memory.versions import MemoryVersions
from stepwell_engine.adapters.sqlite.database import Database
from stepwell_engine.adapters.sqlite.grants import SqliteGrants
from stepwell_engine.adapters.sqlite.projects import SqliteProjects
from stepwell_engine.adapters.sqlite.queues import SqliteQueues
from stepwell_engine.adapters.sqlite.resources import SqliteResources
from stepwell_engine.adapters.sqlite.runs import SqliteRuns
from stepwell_engine.adapters.sqlite.versions import SqliteVersions
from stepwell_engine.ports import Grants, Projects, Queues, Resources, Runs, Versions
from tools.moto_home import DynamoHome


class Home(Protocol):
    """One set of adapters on an empty store."""

    @property
    def runs(self) -> Runs: ...

    @property
    def queues(self) -> Queues: ...

    @property
    def projects(self) -> Projects: ...

    @property
    def grants(self) -> Grants: ...

    @property
    def versions(self) -> Versions: ...

    @property
    def resources(self) -> Resources: ...

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
        self.projects = MemoryProjects()
        self.grants = MemoryGrants()
        self.versions = MemoryVersions()
        self.resources = MemoryResources()

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
        self.projects: Projects = SqliteProjects(self.database)
        self.grants: Grants = SqliteGrants(self.database)
        self.versions: Versions = SqliteVersions(self.database)
        self.resources: Resources = SqliteResources(self.database)

    def forget(self, run_id: str) -> None:
        sql = "DELETE FROM heads WHERE run_id = ?"
        self.database.write(lambda connection: connection.execute(sql, (run_id,)))

    def stored(self, run_id: str) -> object:
        sql = "SELECT * FROM heads WHERE run_id = ?"
        return self.database.read(lambda connection: connection.execute(sql, (run_id,)).fetchall())

    def close(self) -> None:
        self.database.close()


class CachedHome(SqliteHome):
    """As in the embedded host: what every step asks for is remembered."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.projects = CachedProjects(self.projects)
        self.grants = CachedGrants(self.grants)
        self.versions = CachedVersions(self.versions)
        self.resources = CachedResources(self.resources)


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
