"""What parked runs in the SQLite file change about the work on one that moves: nothing.

Counted are the steps of SQLite's virtual machine; compared are the plans of all statements. Time
is not measured.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

from stepwell_engine.adapters.sqlite.database import Database, Operation
from stepwell_engine.adapters.sqlite.runs import SqliteRuns
from stepwell_engine.core.run.head import Head
from stepwell_engine.wiring.embedded import stores_of
from tools.bench.beside import NOTHING, Beside

T = TypeVar("T")

BATCH = 10_000  # heads in one transaction


@dataclass(frozen=True, slots=True)
class Work:
    """What was done: steps of the virtual machine by label, and each statement's plan."""

    steps: Mapping[str, int]
    plans: Mapping[str, str]


@dataclass
class Watch:
    """Counts what the connections do, under the label of the moment."""

    label: str = ""
    steps: Counter[str] = field(default_factory=Counter)
    statements: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def under(self, label: str) -> Iterator[None]:
        """Count under a label meanwhile, and remember statements."""
        self.label = label
        try:
            yield
        finally:
            self.label = ""

    def step(self) -> int:
        """One step; 0: go on."""
        self.steps[self.label] += 1
        return 0

    def statement(self, sql: str, values: Any) -> None:
        """A statement, with values to explain it with."""
        if self.label and not sql.startswith(("BEGIN", "COMMIT", "ROLLBACK")):
            self.statements[sql] = values


class WatchedConnection:
    """A connection that reports its statements."""

    def __init__(self, connection: sqlite3.Connection, watch: Watch) -> None:
        self._connection = connection
        self._watch = watch
        connection.set_progress_handler(watch.step, 1)

    def execute(self, sql: str, values: Any = ()) -> sqlite3.Cursor:
        """One statement."""
        self._watch.statement(sql, values)
        return self._connection.execute(sql, values)

    def executemany(self, sql: str, rows: list[Any]) -> sqlite3.Cursor:
        """One statement, several times."""
        self._watch.statement(sql, rows[0])
        return self._connection.executemany(sql, rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class WatchedDatabase(Database):
    """A Database whose connections are watched."""

    def __init__(self, path: Path, watch: Watch) -> None:
        self._watch = watch
        super().__init__(path)

    def _connect(self, prepare: Operation[Any] | None = None) -> sqlite3.Connection:
        return cast(sqlite3.Connection, WatchedConnection(super()._connect(prepare), self._watch))


class Transaction:
    """What SqliteRuns needs of a Database, within a transaction that is open already."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def write(self, operation: Operation[T]) -> T:
        """Do it, and leave the commit to others."""
        return operation(self._connection)


def compare(folder: Path, parked: int) -> dict[str, Any]:
    """How many times the steps that an empty file takes, by label; how many plans differ."""
    empty, full = work(folder / "empty.db", 0), work(folder / "full.db", parked)
    return {
        **{f"parked_{label}": full.steps[label] / steps for label, steps in empty.steps.items()},
        **{f"parked_{label}_steps": steps for label, steps in full.steps.items()},
        "parked_plans": len(full.plans),
        "parked_plans_changed": len(dict(empty.plans.items() ^ full.plans.items())),
    }


def work(path: Path, parked: int, harm: str | None = None) -> Work:
    """One run's work in a new file with so many parked runs. `harm`: a statement before it."""
    watch = Watch()
    with closing(Database(path)) as database:
        fill(database, _beside(database).parked(parked))
        if harm is not None:
            database.write(lambda connection: connection.execute(harm))
    with closing(WatchedDatabase(path, watch)) as database:
        beside = _beside(database)
        beside.move(watch.under)  # which reads the schema and what is remembered
        watch.steps.clear()
        beside.move(watch.under)
    del watch.steps[""]
    return Work(watch.steps, plans(path, watch.statements))


def _beside(database: Database) -> Beside:
    return Beside(stores_of(database, SqliteRuns(database), NOTHING))


def fill(database: Database, heads: Iterable[Head]) -> None:
    """Put heads, many in one transaction."""

    left = iter(heads)
    while batch := tuple(islice(left, BATCH)):
        database.write(partial(_put, batch))


def _put(batch: Sequence[Head], connection: sqlite3.Connection) -> None:
    runs = SqliteRuns(cast(Database, Transaction(connection)))
    for head in batch:
        runs.create(head)


def plans(path: Path, statements: Mapping[str, Any]) -> dict[str, str]:
    """How SQLite goes about each statement."""
    with closing(sqlite3.connect(path)) as connection:
        return {
            sql: "; ".join(
                row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)
            )
            for sql, values in statements.items()
        }
