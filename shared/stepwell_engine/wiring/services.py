"""The use cases behind the API."""

from stepwell_engine.api.services import Services
from stepwell_engine.ports import Clock, Dispatcher, Ids, LongPollSlots
from stepwell_engine.service.projects.definitions import Workflows
from stepwell_engine.service.projects.identity import Identity
from stepwell_engine.service.projects.queue_messages import QueueMessages
from stepwell_engine.service.projects.resources import ResourceRegistry
from stepwell_engine.service.runs.controls import Controls
from stepwell_engine.service.runs.queries import Queries
from stepwell_engine.service.runs.starts import Starts
from stepwell_engine.service.runs.store_refusals import StoreRefusals
from stepwell_engine.wiring.stores import Capabilities, Stores


def services(
    stores: Stores,
    workflows: Workflows,
    dispatcher: Dispatcher,
    clock: Clock,
    ids: Ids,
    capabilities: Capabilities,
    refusals: StoreRefusals,
    slots: LongPollSlots | None,
) -> Services:
    """The use cases over a home's adapters. `slots`: None lets every request wait."""
    return Services(
        workflows=workflows,
        starts=Starts(stores.runs, workflows, dispatcher, clock, ids),
        controls=Controls(stores.runs, workflows, dispatcher, clock, ids),
        queries=Queries(stores.runs, workflows, clock, refusals, slots),
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
        refusals=refusals,
    )
