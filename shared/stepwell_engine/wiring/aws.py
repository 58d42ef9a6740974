"""The home on AWS."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from stepwell_engine import limits
from stepwell_engine.adapters.aws.clients import Clients
from stepwell_engine.adapters.aws.dynamodb import DynamoDB, connect
from stepwell_engine.adapters.aws.dynamodb_catalog import DynamoCatalog
from stepwell_engine.adapters.aws.dynamodb_runs import DynamoRuns
from stepwell_engine.adapters.aws.kms_secrets import KmsSecrets
from stepwell_engine.adapters.aws.lambda_functions import LambdaFunctions, invoke_later
from stepwell_engine.adapters.aws.rds_data import DataApiPerformer
from stepwell_engine.adapters.aws.sqs_hints import SqsBatches, SqsDispatcher
from stepwell_engine.adapters.aws.sqs_queues import SqsQueues
from stepwell_engine.adapters.enqueue import EnqueuePerformer
from stepwell_engine.adapters.functions import Call, FunctionPerformer
from stepwell_engine.adapters.system import RandomIds, SystemClock
from stepwell_engine.adapters.tally import TalliedPerformer, Tally
from stepwell_engine.core.definition import Kind
from stepwell_engine.core.outcome import Act, Outcome
from stepwell_engine.ports import Clock, Performer, Secrets
from stepwell_engine.service.sweep import Sweep
from stepwell_engine.settings.aws import AwsSettings, Network
from stepwell_engine.wiring.engine import Abilities, Engine, Stores, assemble

if TYPE_CHECKING:
    from stepwell_engine.adapters.http.client import HttpClient
    from stepwell_engine.adapters.http.url_function import UrlFunctions
    from stepwell_engine.adapters.http.webhook import WebhookPerformer

ABILITIES: Final = Abilities(
    functions=frozenset({"url", "lambda"}),
    databases=frozenset({"cluster"}),
    # The tick's period, and how late the scheduler may wake it.
    look_ahead=150 * limits.SECOND,
)


@dataclass(frozen=True, slots=True)
class AwsHome:
    """The home on AWS.

    The sweep's hints go out in batches, the last of them with `flush`. `invoke_later` takes the
    ARN of a function of the installation and its event; it tells whether that will be invoked.
    """

    engine: Engine
    flush: Callable[[], None]
    invoke_later: Callable[[str, bytes], bool]
    tally: Tally
    clock: Clock
    close: Callable[[], None]


def aws(
    settings: AwsSettings, clock: Clock | None = None, clients: Clients | None = None
) -> AwsHome:
    """The home that the settings describe. `clock` and `clients`: for tests, which skip time."""
    clock = clock or SystemClock()
    clients = clients or Clients()
    tally = Tally()
    database = DynamoDB(connect(session=clients.session), clock)
    stores = Stores(
        DynamoRuns(database, settings.runs_table),
        SqsQueues(clients, settings.hints_queue_url, settings.queue_prefix),
        DynamoCatalog(database, settings.control_table),
        KmsSecrets(clients, settings.key_id, clock),
    )
    outside = _Outside(settings.allowed_networks, stores.secrets, clock)
    performers = {
        kind: TalliedPerformer(performer, tally)
        for kind, performer in _performers(stores, outside, clients, clock).items()
    }
    dispatcher = SqsDispatcher(clients, settings.hints_queue_url, tally)
    batches = SqsBatches(clients, settings.hints_queue_url, tally)
    engine = assemble(stores, performers, dispatcher, clock, RandomIds(clock), ABILITIES)
    sweep = Sweep(stores.runs, batches, clock, ABILITIES.look_ahead)
    return AwsHome(
        engine=replace(engine, sweep=sweep),
        flush=batches.flush,
        invoke_later=partial(invoke_later, clients),
        tally=tally,
        clock=clock,
        close=outside.close,
    )


def _performers(
    stores: Stores, outside: "_Outside", clients: Clients, clock: Clock
) -> Mapping[Kind, Performer]:
    calls: Mapping[str, Call] = {"url": outside.call, "lambda": LambdaFunctions(clients).call}
    return {
        Kind.ENQUEUE: EnqueuePerformer(stores.catalog, stores.queues, clock),
        Kind.FUNCTION: FunctionPerformer(stores.catalog, calls),
        Kind.SQL: DataApiPerformer(stores.catalog, clients),
        Kind.WEBHOOK: outside,
    }


class _Outside:
    """Webhooks and functions by URL. Their libraries load with the first step that needs them."""

    def __init__(self, allowed: Sequence[Network], secrets: Secrets, clock: Clock) -> None:
        self._allowed = allowed
        self._secrets = secrets
        self._clock = clock
        self._adapters = ExitStack()

    def perform(self, act: Act) -> Outcome:
        """Deliver a webhook."""
        return self._webhooks.perform(act)

    def call(self, url: str, act: Act) -> Outcome:
        """Call a function by URL."""
        return self._functions.call(url, act)

    def close(self) -> None:
        """Close the idle connections."""
        self._adapters.close()

    @cached_property
    def _client(self) -> "HttpClient":
        from stepwell_engine.adapters.http.client import HttpClient  # noqa: PLC0415
        from stepwell_engine.adapters.http.resolver import SystemResolver  # noqa: PLC0415
        from stepwell_engine.adapters.http.transport import GuardedAdapter  # noqa: PLC0415

        adapter = GuardedAdapter(self._allowed, SystemResolver())
        self._adapters.callback(adapter.close)
        return HttpClient(adapter, self._clock)

    @cached_property
    def _webhooks(self) -> "WebhookPerformer":
        from stepwell_engine.adapters.http.webhook import WebhookPerformer  # noqa: PLC0415

        return WebhookPerformer(self._client, self._secrets, self._clock)

    @cached_property
    def _functions(self) -> "UrlFunctions":
        from stepwell_engine.adapters.http.url_function import UrlFunctions  # noqa: PLC0415

        return UrlFunctions(self._client)
