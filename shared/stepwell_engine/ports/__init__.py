"""What the engine needs from the outside world, as protocols. Times in ms since the epoch.

Every method of a store may raise Unavailable: the call may then have happened, or may still
happen later. Every write is therefore conditional and safe to repeat.
"""

from stepwell_engine.ports.grants import Grant, Grants
from stepwell_engine.ports.hints import Dispatcher
from stepwell_engine.ports.projects import Project, Projects
from stepwell_engine.ports.queues import Message, Queues
from stepwell_engine.ports.resources import Resource, Resources
from stepwell_engine.ports.runs import (
    KEEP,
    UNCHECKED,
    Commit,
    Delivered,
    Done,
    Due,
    Keep,
    Refused,
    Revival,
    Runs,
    Unchecked,
    Written,
)
from stepwell_engine.ports.secrets import Secrets
from stepwell_engine.ports.ticks import Ticks
from stepwell_engine.ports.versions import Published, Versions
from stepwell_engine.ports.work import (
    Clock,
    Ids,
    Isolation,
    LongPollSlots,
    StepRunner,
    TaskGroup,
    TaskGroups,
)

__all__ = [
    "KEEP",
    "UNCHECKED",
    "Clock",
    "Commit",
    "Delivered",
    "Dispatcher",
    "Done",
    "Due",
    "Grant",
    "Grants",
    "Ids",
    "Isolation",
    "Keep",
    "LongPollSlots",
    "Message",
    "Project",
    "Projects",
    "Published",
    "Queues",
    "Refused",
    "Resource",
    "Resources",
    "Revival",
    "Runs",
    "Secrets",
    "StepRunner",
    "TaskGroup",
    "TaskGroups",
    "Ticks",
    "Unchecked",
    "Versions",
    "Written",
]
