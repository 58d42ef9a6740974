"""What the homes differ in: where they keep things, and what they can do."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from stepwell_engine.core.values.units import Ms
from stepwell_engine.ports import (
    Grants,
    Projects,
    Queues,
    Resources,
    Runs,
    Secrets,
    Versions,
)


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
