"""The settings of the functions on AWS: variables that the deployment sets.

They are read without pydantic, which would make a function's start a quarter longer.
"""

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from stepwell_engine.limits import DUE_SHARDS, MAX_DUE_SHARDS

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")

# What a function cannot do without, and what it may.
REQUIRED: Final[Mapping[str, str]] = {
    "STEPWELL_RUNS_TABLE": "name of the table of runs",
    "STEPWELL_CONTROL_TABLE": "name of the table of projects, workflows and resources",
    "STEPWELL_HINTS_QUEUE_URL": "URL of the queue of hints",
    "STEPWELL_ALONE_QUEUE_URL": "URL of the queue of hints whose runs have an invocation each",
    "STEPWELL_KEY_ID": "ARN of the KMS key that secrets are sealed with",
    "STEPWELL_QUEUE_PREFIX": "what the names of the projects' queues begin with",
}
OPTIONAL: Final[Mapping[str, tuple[str, str]]] = {
    "STEPWELL_LOG_LEVEL": ("INFO", "least severity of what is logged"),
    "STEPWELL_ALLOWED_NETWORKS": (
        "",
        "networks, separated by commas, that webhooks may reach although they are not public",
    ),
    "STEPWELL_DUE_SHARDS": (
        str(DUE_SHARDS),
        f"partitions of the index of what is due, 1 to {MAX_DUE_SHARDS}; "
        "more at any time, never fewer",
    ),
}


class BadEnvironment(ValueError):
    """A variable is missing or cannot be used; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """See REQUIRED and OPTIONAL."""

    runs_table: str
    control_table: str
    hints_queue_url: str
    alone_queue_url: str
    key_id: str
    queue_prefix: str
    log_level: str = "INFO"
    allowed_networks: tuple[Network, ...] = ()
    due_shards: int = DUE_SHARDS


def read() -> AwsSettings:
    """The settings. BadEnvironment."""
    missing = [name for name in REQUIRED if not os.environ.get(name)]
    if missing:
        raise BadEnvironment(f"{', '.join(missing)}: not set, but the deployment sets it")
    level = _optional("STEPWELL_LOG_LEVEL")
    if level not in _LEVELS:
        raise BadEnvironment(f"STEPWELL_LOG_LEVEL: should be one of {', '.join(_LEVELS)}")
    return AwsSettings(
        runs_table=os.environ["STEPWELL_RUNS_TABLE"],
        control_table=os.environ["STEPWELL_CONTROL_TABLE"],
        hints_queue_url=os.environ["STEPWELL_HINTS_QUEUE_URL"],
        alone_queue_url=os.environ["STEPWELL_ALONE_QUEUE_URL"],
        key_id=os.environ["STEPWELL_KEY_ID"],
        queue_prefix=os.environ["STEPWELL_QUEUE_PREFIX"],
        log_level=level,
        allowed_networks=_networks(_optional("STEPWELL_ALLOWED_NETWORKS")),
        due_shards=_shards(_optional("STEPWELL_DUE_SHARDS")),
    )


def _optional(name: str) -> str:
    return os.environ.get(name) or OPTIONAL[name][0]


def _shards(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_DUE_SHARDS:
        raise BadEnvironment(f"STEPWELL_DUE_SHARDS: should be 1 to {MAX_DUE_SHARDS}")
    return int(text)


def _networks(text: str) -> tuple[Network, ...]:
    try:
        return tuple(ipaddress.ip_network(one.strip()) for one in text.split(",") if one.strip())
    except ValueError as error:
        raise BadEnvironment(
            f"STEPWELL_ALLOWED_NETWORKS: {error}; right is 10.0.0.0/8,fd00::/8"
        ) from error
