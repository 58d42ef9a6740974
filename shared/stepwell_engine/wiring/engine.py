"""What every home has: the use cases over its adapters."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from stepwell_engine.adapters.crews import ThreadCrews
from stepwell_engine.adapters.gate import ProcessGate
from stepwell_engine.core.definition import Kind
from stepwell_engine.edge.services import Services
from stepwell_engine.ports import (
    Catalog,
    Clock,
    Dispatcher,
    Ids,
    Performer,
    Queues,
    Runs,
    Secrets,
    Waits,
)
from stepwell_engine.service.advance import Advance
from stepwell_engine.service.controls import Controls
from stepwell_engine.service.definitions import Workflows
from stepwell_engine.service.identity import Identity
from stepwell_engine.service.queries import Queries
from stepwell_engine.service.queue_messages import QueueMessages
from stepwell_engine.service.resources import Resources
from stepwell_engine.service.starts import Starts
from stepwell_engine.service.sweep import Sweep


@dataclass(frozen=True, slots=True)
class Stores:
    """Where a home keeps things."""

    runs: Runs
    queues: Queues
    catalog: Catalog
    secrets: Secrets


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a home can do: kinds of functions and of databases; how far a tick looks ahead, ms."""

    functions: AbstractSet[str]
    databases: AbstractSet[str]
    look_ahead: int


@dataclass(frozen=True, slots=True)
class Engine:
    """The use cases."""

    services: Services
    advance: Advance
    sweep: Sweep


def assemble(
    stores: Stores,
    performers: Mapping[Kind, Performer],
    dispatcher: Dispatcher,
    clock: Clock,
    ids: Ids,
    abilities: Abilities,
    waits: Waits | None = None,
) -> Engine:
    """The use cases over a home's adapters. `waits`: None lets every request wait."""
    workflows = Workflows(stores.catalog, stores.secrets, clock)
    return Engine(
        services=Services(
            workflows=workflows,
            starts=Starts(stores.runs, workflows, dispatcher, clock, ids),
            controls=Controls(stores.runs, workflows, dispatcher, clock, ids),
            queries=Queries(stores.runs, workflows, clock, waits),
            resources=Resources(
                stores.catalog,
                stores.queues,
                stores.secrets,
                clock,
                function_kinds=abilities.functions,
                database_kinds=abilities.databases,
            ),
            messages=QueueMessages(stores.queues, clock),
            identity=Identity(stores.catalog, clock, ids),
        ),
        advance=Advance(
            stores.runs,
            workflows,
            performers,
            ThreadCrews(),
            dispatcher,
            clock,
            ids,
            ProcessGate(),
        ),
        sweep=Sweep(stores.runs, dispatcher, clock, abilities.look_ahead),
    )
