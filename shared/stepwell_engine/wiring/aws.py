"""The home on AWS."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

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
from stepwell_engine.ports import Clock, Performer
from stepwell_engine.service.sweep import Sweep
from stepwell_engine.settings.aws import AwsSettings
from stepwell_engine.wiring.engine import Abilities, Engine, Stores, assemble
from stepwell_engine.wiring.outside import Outside

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
    outside = Outside(settings.allowed_networks, stores.secrets, clock)
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
    stores: Stores, outside: Outside, clients: Clients, clock: Clock
) -> Mapping[Kind, Performer]:
    calls: Mapping[str, Call] = {"url": outside.call, "lambda": LambdaFunctions(clients).call}
    return {
        Kind.ENQUEUE: EnqueuePerformer(stores.catalog, stores.queues, clock),
        Kind.FUNCTION: FunctionPerformer(stores.catalog, calls),
        Kind.SQL: DataApiPerformer(stores.catalog, clients),
        Kind.WEBHOOK: outside,
    }
