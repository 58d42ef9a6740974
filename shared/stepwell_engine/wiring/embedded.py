"""The embedded home."""

import ipaddress
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from stepwell_engine import limits
from stepwell_engine.adapters.embedded.callables import Callables
from stepwell_engine.adapters.embedded.catalog_cache import CachedCatalog
from stepwell_engine.adapters.embedded.commands import Commands
from stepwell_engine.adapters.embedded.hints import ProcessDispatcher
from stepwell_engine.adapters.embedded.sealing import SealedSecrets, create_key, read_key
from stepwell_engine.adapters.embedded.sqlite import Database
from stepwell_engine.adapters.embedded.sqlite_catalog import SqliteCatalog
from stepwell_engine.adapters.embedded.sqlite_queues import SqliteQueues
from stepwell_engine.adapters.embedded.sqlite_runs import SqliteRuns
from stepwell_engine.adapters.enqueue import EnqueuePerformer
from stepwell_engine.adapters.functions import Call, FunctionPerformer
from stepwell_engine.adapters.http.client import HttpClient
from stepwell_engine.adapters.http.resolver import SystemResolver
from stepwell_engine.adapters.http.transport import GuardedAdapter
from stepwell_engine.adapters.http.url_function import UrlFunctions
from stepwell_engine.adapters.http.webhook import WebhookPerformer
from stepwell_engine.adapters.system import RandomIds, SystemClock
from stepwell_engine.core.definition import Kind
from stepwell_engine.ports import Clock, Performer
from stepwell_engine.settings.embedded import Settings, environment
from stepwell_engine.wiring.engine import Abilities, Engine, Stores, assemble
from stepwell_engine.wiring.lazy import LazyPerformer

ABILITIES: Final = Abilities(
    functions=frozenset({"url", "command", "python"}),
    databases=frozenset({"embedded", "dsn"}),
    # The tick comes every second; it looks further ahead, for one that comes late.
    look_ahead=5 * limits.SECOND,
)
# On one machine a workflow may call what listens on that machine.
LOOPBACK: Final = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))


@dataclass(frozen=True, slots=True)
class Home:
    """The embedded home. `recover` is for its host to call once, before anything runs."""

    engine: Engine
    hints: ProcessDispatcher
    clock: Clock
    recover: Callable[[], int]
    close: Callable[[], None]


def embedded(settings: Settings, clock: Clock | None = None) -> Home:
    """The home in the data folder, which exists and is locked by the caller.

    `clock`: for tests that skip time. StoreError, one sentence, if what lies in the folder cannot
    be used; OSError if it cannot be written. Nothing stays open then.
    """
    clock = clock or SystemClock()
    file = settings.data / "stepwell.db"
    key = settings.data / "secret.key"
    if not file.exists():
        create_key(key)  # first: a database without its key is refused
        file.touch(mode=0o600)
    with ExitStack() as opened:
        database = Database(file)
        opened.callback(database.close)
        secrets = SealedSecrets(read_key(key))
        runs = SqliteRuns(database)
        catalog = CachedCatalog(SqliteCatalog(database))
        stores = Stores(runs, SqliteQueues(database), catalog, secrets)
        late = opened.enter_context(ExitStack())  # for what is opened by a later step
        performers = _performers(settings, stores, clock, opened, late)
        hints = ProcessDispatcher(clock)
        opened.callback(hints.close)
        engine = assemble(stores, performers, hints, clock, RandomIds(clock), ABILITIES)
        kept = opened.pop_all()
    return Home(engine, hints, clock, lambda: runs.recover(clock.now()), kept.close)


def _performers(
    settings: Settings, stores: Stores, clock: Clock, opened: ExitStack, late: ExitStack
) -> Mapping[Kind, Performer]:
    outside = GuardedAdapter(LOOPBACK, SystemResolver())
    opened.callback(outside.close)
    client = HttpClient(outside, clock)
    callables = Callables(settings.functions)
    opened.callback(callables.close)
    calls: Mapping[str, Call] = {
        "url": UrlFunctions(client).call,
        "command": Commands(environment()).call,
        "python": callables.call,
    }
    return {
        Kind.ENQUEUE: EnqueuePerformer(stores.catalog, stores.queues, clock),
        Kind.FUNCTION: FunctionPerformer(stores.catalog, calls),
        Kind.SQL: LazyPerformer(lambda: _sql(settings, stores, late)),
        Kind.WEBHOOK: WebhookPerformer(client, stores.secrets, clock),
    }


def _sql(settings: Settings, stores: Stores, opened: ExitStack) -> Performer:
    """For steps of the kind sql. The client library takes a while to load, so not at the start."""
    from stepwell_engine.adapters.embedded.postgres import LocalPostgres  # noqa: PLC0415
    from stepwell_engine.adapters.embedded.sql import SqlPerformer  # noqa: PLC0415

    given = settings.dsn
    if given is None:
        postgres = LocalPostgres(settings.data / "postgres")
        opened.callback(postgres.stop)
        performer = SqlPerformer(stores.catalog, stores.secrets, postgres.dsn)
    else:
        performer = SqlPerformer(stores.catalog, stores.secrets, lambda _: given)
    opened.callback(performer.close)
    return performer
