"""What every home has: the use cases over its adapters."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from stepwell_engine.adapters.process.gate import ProcessGate
from stepwell_engine.adapters.process.task_groups import ThreadTaskGroups
from stepwell_engine.api.services import Services
from stepwell_engine.core.values.units import Ms
from stepwell_engine.ports import (
    Clock,
    Dispatcher,
    Grants,
    Ids,
    LongPollSlots,
    Projects,
    Queues,
    Resources,
    Runs,
    Secrets,
    StepRunner,
    Versions,
)
from stepwell_engine.service.projects.definitions import Workflows
from stepwell_engine.service.projects.identity import Identity
from stepwell_engine.service.projects.queue_messages import QueueMessages
from stepwell_engine.service.projects.resources import ResourceRegistry
from stepwell_engine.service.runs.controls import Controls
from stepwell_engine.service.runs.queries import Queries
from stepwell_engine.service.runs.starts import Starts
from stepwell_engine.service.worker.advance import Advance
from stepwell_engine.service.worker.sweep import Sweep


@dataclass(frozen=True, slots=True)
class Stores:
    """Where a home keeps things."""

    runs: Runs
    projects: Projects
    grants: Grants
    versions: Versions
    resources: Resources
    queues: Queues
    secrets: Secrets


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a home can do: kinds of functions and of databases; how far a tick looks ahead, ms."""

    functions: AbstractSet[str]
    databases: AbstractSet[str]
    look_ahead: Ms


@dataclass(frozen=True, slots=True)
class Engine:
    """The use cases."""

    services: Services
    advance: Advance
    sweep: Sweep


def assemble(
    stores: Stores,
    runners: Mapping[str, StepRunner],
    dispatcher: Dispatcher,
    clock: Clock,
    ids: Ids,
    capabilities: Capabilities,
    slots: LongPollSlots | None = None,
) -> Engine:
    """The use cases over a home's adapters. `slots`: None lets every request wait."""
    workflows = Workflows(stores.versions, stores.secrets, clock)
    return Engine(
        services=Services(
            workflows=workflows,
            starts=Starts(stores.runs, workflows, dispatcher, clock, ids),
            controls=Controls(stores.runs, workflows, dispatcher, clock, ids),
            queries=Queries(stores.runs, workflows, clock, slots),
            resources=ResourceRegistry(
                stores.resources,
                stores.queues,
                stores.secrets,
                clock,
                function_kinds=capabilities.functions,
                database_kinds=capabilities.databases,
            ),
            messages=QueueMessages(stores.queues, clock),
            identity=Identity(stores.projects, stores.grants, clock, ids),
        ),
        advance=Advance(
            stores.runs,
            workflows,
            runners,
            ThreadTaskGroups(),
            dispatcher,
            clock,
            ids,
            ProcessGate(),
        ),
        sweep=Sweep(stores.runs, dispatcher, clock, capabilities.look_ahead),
    )
