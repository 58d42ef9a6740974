"""The home on AWS."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from stepwell_engine import limits
from stepwell_engine.adapters.aws_clients import Clients
from stepwell_engine.adapters.dynamodb.client import DynamoDB, connect
from stepwell_engine.adapters.dynamodb.grants import DynamoGrants
from stepwell_engine.adapters.dynamodb.projects import DynamoProjects
from stepwell_engine.adapters.dynamodb.resources import DynamoResources
from stepwell_engine.adapters.dynamodb.runs import DynamoRuns
from stepwell_engine.adapters.dynamodb.ticks import DynamoTicks
from stepwell_engine.adapters.dynamodb.versions import DynamoVersions
from stepwell_engine.adapters.process.counters import CountedStepRunner, Counters
from stepwell_engine.adapters.process.system import RandomIds, SystemClock
from stepwell_engine.adapters.runners.enqueue import EnqueueRunner
from stepwell_engine.adapters.runners.function import Call, FunctionRunner
from stepwell_engine.adapters.runners.lambda_function import LambdaFunctions, invoke_later
from stepwell_engine.adapters.runners.sql_data_api import DataApiRunner
from stepwell_engine.adapters.secrets.kms import KmsSecrets
from stepwell_engine.adapters.sqs.hints import SqsBatches, SqsDispatcher, SqsRedeliveries
from stepwell_engine.adapters.sqs.queues import SqsQueues
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.ports import Clock, StepRunner, Ticks
from stepwell_engine.service.worker.process import WorkerProcess
from stepwell_engine.service.worker.sweep import Sweep
from stepwell_engine.settings.aws import AwsSettings
from stepwell_engine.wiring.engine import Engine, assemble
from stepwell_engine.wiring.outside import Outside
from stepwell_engine.wiring.stores import Capabilities, Stores

CAPABILITIES: Final = Capabilities(
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
    `redeliveries` has a hint that failed delivered again in seconds. `alone_queue` is the name of
    the queue whose messages have an invocation each.
    """

    engine: Engine
    flush: Callable[[], None]
    invoke_later: Callable[[str, bytes], bool]
    redeliveries: SqsRedeliveries
    alone_queue: str
    ticks: Ticks
    counters: Counters
    clock: Clock
    close: Callable[[], None]


def aws(
    settings: AwsSettings, clock: Clock | None = None, clients: Clients | None = None
) -> AwsHome:
    """The home that the settings describe. `clock` and `clients`: for tests, which skip time."""
    clock = clock or SystemClock()
    clients = clients or Clients()
    counters = Counters()
    database = DynamoDB(connect(session=clients.session), clock)
    stores = Stores(
        runs=DynamoRuns(database, settings.runs_table, settings.due_shards),
        projects=DynamoProjects(database, settings.control_table),
        grants=DynamoGrants(database, settings.control_table),
        versions=DynamoVersions(database, settings.control_table),
        resources=DynamoResources(database, settings.control_table),
        queues=SqsQueues(clients, settings.hints_queue_url, settings.queue_prefix),
        secrets=KmsSecrets(clients, settings.key_id, clock),
    )
    outside = Outside(settings.allowed_networks, stores.secrets, clock)
    runners = {
        kind: CountedStepRunner(runner, counters)
        for kind, runner in _runners(stores, outside, clients, clock).items()
    }
    queues = settings.hints_queue_url, settings.alone_queue_url
    dispatcher = SqsDispatcher(clients, *queues, counters)
    batches = SqsBatches(clients, settings.hints_queue_url, counters)
    process = WorkerProcess(count=counters.add)
    engine = assemble(
        stores, runners, dispatcher, clock, RandomIds(clock), CAPABILITIES, process=process
    )
    sweep = Sweep(stores.runs, batches, clock, CAPABILITIES.look_ahead)
    return AwsHome(
        engine=replace(engine, sweep=sweep),
        flush=batches.flush,
        invoke_later=partial(invoke_later, clients),
        redeliveries=SqsRedeliveries(clients, *queues, counters),
        alone_queue=settings.alone_queue_url.rpartition("/")[2],
        ticks=DynamoTicks(database, settings.control_table),
        counters=counters,
        clock=clock,
        close=outside.close,
    )


def _runners(
    stores: Stores, outside: Outside, clients: Clients, clock: Clock
) -> Mapping[str, StepRunner]:
    calls: Mapping[str, Call] = {"url": outside.call, "lambda": LambdaFunctions(clients).call}
    return {
        Kind.ENQUEUE: EnqueueRunner(stores.resources, stores.queues, clock),
        Kind.FUNCTION: FunctionRunner(stores.resources, calls, clock),
        Kind.SQL: DataApiRunner(stores.resources, clients, clock),
        Kind.WEBHOOK: outside,
    }
