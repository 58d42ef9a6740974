"""What the API calls: built by wiring, handed to the application."""

from dataclasses import dataclass

from stepwell_engine.service.controls import Controls
from stepwell_engine.service.definitions import Workflows
from stepwell_engine.service.identity import Identity
from stepwell_engine.service.queries import Queries
from stepwell_engine.service.queue_messages import QueueMessages
from stepwell_engine.service.resources import Resources
from stepwell_engine.service.starts import Starts


@dataclass(frozen=True, slots=True)
class Services:
    """The use cases behind the routes."""

    workflows: Workflows
    starts: Starts
    controls: Controls
    queries: Queries
    resources: Resources
    messages: QueueMessages
    identity: Identity
