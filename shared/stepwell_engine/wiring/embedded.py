"""The embedded home."""

import ipaddress
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stepwell_engine import limits
from stepwell_engine.adapters.cached.grants import CachedGrants
from stepwell_engine.adapters.cached.projects import CachedProjects
from stepwell_engine.adapters.cached.resources import CachedResources
from stepwell_engine.adapters.cached.versions import CachedVersions
from stepwell_engine.adapters.process.hints import ProcessDispatcher
from stepwell_engine.adapters.process.isolation import ProcessIsolation
from stepwell_engine.adapters.process.long_poll import BoundedLongPollSlots
from stepwell_engine.adapters.process.system import RandomIds, SystemClock
from stepwell_engine.adapters.runners.enqueue import EnqueueRunner
from stepwell_engine.adapters.secrets.sealed import SealedSecrets, create_key, read_key
from stepwell_engine.adapters.sqlite.database import RESTORE, Database
from stepwell_engine.adapters.sqlite.grants import SqliteGrants
from stepwell_engine.adapters.sqlite.key_check import check_key
from stepwell_engine.adapters.sqlite.projects import SqliteProjects
from stepwell_engine.adapters.sqlite.queues import SqliteQueues
from stepwell_engine.adapters.sqlite.resources import SqliteResources
from stepwell_engine.adapters.sqlite.runs import SqliteRuns
from stepwell_engine.adapters.sqlite.versions import SqliteVersions
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.errors import StoreError
from stepwell_engine.ports import Clock, Secrets, StepRunner
from stepwell_engine.service.worker.process import WorkerProcess
from stepwell_engine.settings.embedded import Settings, environment
from stepwell_engine.wiring.engine import Engine, assemble
from stepwell_engine.wiring.jobs import CHILD, Jobs
from stepwell_engine.wiring.lazy import LazyStepRunner
from stepwell_engine.wiring.outside import Outside
from stepwell_engine.wiring.stores import Capabilities, Stores

if TYPE_CHECKING:
    from stepwell_engine.adapters.postgres.local import LocalPostgres

CAPABILITIES: Final = Capabilities(
    functions=frozenset({"url", "command", "python"}),
    databases=frozenset({"embedded", "dsn"}),
    # The tick comes every second; it looks further ahead, for one that comes late.
    look_ahead=5 * limits.SECOND,
)
ABANDONING: Final = 5 * limits.SECOND  # that letting go of what runs may take when the host ends
CREDENTIALS: Final = "credentials.json"  # written by the host once the rest is there
# On one machine a workflow may call what listens on that machine.
LOOPBACK: Final = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))


@dataclass(frozen=True, slots=True)
class Home:
    """The embedded home. `recover` is for its host to call once, before anything runs.

    After `stop_long_polls` no request waits for a run. `abandon`, right before `close`, lets go of
    the runs that are still in progress; of how many the store would not have it.
    """

    engine: Engine
    hints: ProcessDispatcher
    clock: Clock
    recover: Callable[[], int]
    abandon: Callable[[], int]
    stop_long_polls: Callable[[], None]
    close: Callable[[], None]


def embedded(settings: Settings, clock: Clock | None = None) -> Home:
    """The home in the data folder, which exists and is locked by the caller.

    `clock`: for tests that skip time. StoreError, one sentence, if what lies in the folder cannot
    be used; OSError if it cannot be written. Nothing stays open then.
    """
    clock = clock or SystemClock()
    key = settings.data / "secret.key"
    with ExitStack() as opened:
        database = _database(settings.data, key)
        opened.callback(database.close)
        secrets = SealedSecrets(read_key(key))
        check_key(database, secrets, key)
        runs = SqliteRuns(database)
        stores = stores_of(database, runs, secrets)
        postgres = Postgres(settings.data / "postgres")
        opened.callback(postgres.stop)
        ends: list[Callable[[], None]] = []
        runners = runners_of(settings, stores, clock, opened, postgres.dsn, ends)
        jobs = Jobs(settings, stores.resources, postgres.dsn)
        isolation = ProcessIsolation(CHILD, jobs.of, clock)
        opened.callback(isolation.close)
        ends.append(isolation.close)
        hints = ProcessDispatcher(clock)
        opened.callback(hints.close)
        slots = BoundedLongPollSlots(settings.request_threads // 2)
        ids = RandomIds(clock)
        process = WorkerProcess(isolation=isolation)
        engine = assemble(stores, runners, hints, clock, ids, CAPABILITIES, slots, process)
        kept = opened.pop_all()

    def abandon() -> int:
        return engine.advance.abandon(ends, ABANDONING)

    recover = partial(_recover, runs, clock)
    return Home(engine, hints, clock, recover, abandon, slots.stop, kept.close)


def _recover(runs: SqliteRuns, clock: Clock) -> int:
    return runs.recover(clock.now())


def stores_of(database: Database, runs: SqliteRuns, secrets: Secrets) -> Stores:
    """The stores on one file. What every step and request asks for is remembered."""
    return Stores(
        runs=runs,
        projects=CachedProjects(SqliteProjects(database)),
        grants=CachedGrants(SqliteGrants(database)),
        versions=CachedVersions(SqliteVersions(database)),
        resources=CachedResources(SqliteResources(database)),
        queues=SqliteQueues(database),
        secrets=secrets,
    )


def _database(folder: Path, key: Path) -> Database:
    """Opened, or begun where none has been. StoreError if one has been, but is gone."""
    file = folder / "stepwell.db"
    used = next((one for one in (folder / CREDENTIALS, key) if one.exists()), None)
    if not file.exists():
        if used is not None:
            raise StoreError(f"{file} is missing, although {used.name} is there: {RESTORE}")
        file.touch(mode=0o600)
    if file.stat().st_size == 0 and not (folder / CREDENTIALS).exists():
        create_key(key)  # after the empty file, before its tables: a start may end anywhere
    return Database(file, create=not (folder / CREDENTIALS).exists())


def runners_of(
    settings: Settings,
    stores: Stores,
    clock: Clock,
    opened: ExitStack,
    postgres: Callable[[str], str],
    ends: list[Callable[[], None]],
) -> Mapping[str, StepRunner]:
    """The step runners. `postgres` tells the DSN of a project's database on the embedded server.

    `ends` gets what ends the programs in flight.
    """
    given = settings.dsn
    dsn = postgres if given is None else lambda _: given
    late = opened.enter_context(ExitStack())  # for what a later step opens
    outside = Outside(LOOPBACK, stores.secrets, clock)
    opened.callback(outside.close)
    return {
        Kind.ENQUEUE: EnqueueRunner(stores.resources, stores.queues, clock),
        Kind.FUNCTION: LazyStepRunner(
            lambda: _functions(settings, stores, outside, clock, late, ends)
        ),
        Kind.SQL: LazyStepRunner(lambda: _sql(stores, dsn, clock, late)),
        Kind.WEBHOOK: outside,
    }


class Postgres:
    """The embedded PostgreSQL. Its client library loads with the first sql step, not before."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _server(self) -> "LocalPostgres":
        from stepwell_engine.adapters.postgres.local import LocalPostgres  # noqa: PLC0415

        return LocalPostgres(self._folder)

    def dsn(self, project: str) -> str:
        """Of a project's database; the server is started if need be."""
        return self._server.dsn(project)

    def stop(self) -> None:
        """Stop the server, also one that a killed host left behind."""
        if self._folder.exists():
            self._server.stop()


def _functions(
    settings: Settings,
    stores: Stores,
    outside: Outside,
    clock: Clock,
    opened: ExitStack,
    ends: list[Callable[[], None]],
) -> StepRunner:
    from stepwell_engine.adapters.runners.command import Commands  # noqa: PLC0415
    from stepwell_engine.adapters.runners.function import FunctionRunner  # noqa: PLC0415
    from stepwell_engine.adapters.runners.python_callable import Callables  # noqa: PLC0415

    callables = Callables(settings.functions)
    opened.callback(callables.close)
    commands = Commands(environment())
    opened.callback(commands.close)
    ends.append(commands.end)
    calls = {"url": outside.call, "command": commands.call, "python": callables.call}
    return FunctionRunner(stores.resources, calls, clock)


def _sql(stores: Stores, dsn: Callable[[str], str], clock: Clock, opened: ExitStack) -> StepRunner:
    from stepwell_engine.adapters.runners.sql import SqlRunner  # noqa: PLC0415

    runner = SqlRunner(stores.resources, stores.secrets, dsn, clock)
    opened.callback(runner.close)
    return runner
