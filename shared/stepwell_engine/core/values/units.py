"""What a bare int or str stands for in a signature. Aliases: nothing is converted or checked."""

from typing import TypeAlias

EpochMs: TypeAlias = int
"""A point in time, in milliseconds since the epoch."""

Ms: TypeAlias = int
"""How long something takes, in milliseconds."""

Seconds: TypeAlias = int
"""How long something takes, in seconds, where a protocol or the API counts so."""

RunId: TypeAlias = str
ProjectRef: TypeAlias = str
WorkflowName: TypeAlias = str
LeaseToken: TypeAlias = str
