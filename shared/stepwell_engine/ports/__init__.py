"""What the engine needs from the outside world, as protocols. Times in ms since the epoch.

Every method of a store may raise Unavailable: the call may then have happened, or may still
happen later. Every write is therefore conditional and safe to repeat.
"""

from stepwell_engine.ports.catalog import Catalog, Grant, Project, Published, Resource, Secrets
from stepwell_engine.ports.queues import Message, Queues
from stepwell_engine.ports.runs import (
    KEEP,
    Commit,
    Delivered,
    Done,
    Due,
    Keep,
    Refused,
    Runs,
    Written,
)
from stepwell_engine.ports.work import (
    Clock,
    Dispatcher,
    Gate,
    Ids,
    LongPollSlots,
    StepRunner,
    TaskGroup,
    TaskGroups,
)

__all__ = [
    "KEEP",
    "Catalog",
    "Clock",
    "Commit",
    "Delivered",
    "Dispatcher",
    "Done",
    "Due",
    "Gate",
    "Grant",
    "Ids",
    "Keep",
    "LongPollSlots",
    "Message",
    "Project",
    "Published",
    "Queues",
    "Refused",
    "Resource",
    "Runs",
    "Secrets",
    "StepRunner",
    "TaskGroup",
    "TaskGroups",
    "Written",
]
