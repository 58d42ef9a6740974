"""What the API calls: built by wiring, handed to the application."""

from dataclasses import dataclass

from stepwell_engine.service.projects.definitions import Workflows
from stepwell_engine.service.projects.identity import Identity
from stepwell_engine.service.projects.queue_messages import QueueMessages
from stepwell_engine.service.projects.resources import ResourceRegistry
from stepwell_engine.service.runs.controls import Controls
from stepwell_engine.service.runs.queries import Queries
from stepwell_engine.service.runs.starts import Starts
from stepwell_engine.service.runs.store_refusals import StoreRefusals


@dataclass(frozen=True, slots=True)
class Services:
    """The use cases behind the routes; what the store refuses to the workers beside them."""

    workflows: Workflows
    starts: Starts
    controls: Controls
    queries: Queries
    resources: ResourceRegistry
    messages: QueueMessages
    identity: Identity
    refusals: StoreRefusals
