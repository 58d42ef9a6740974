"""Where a run and its steps stand."""

from enum import StrEnum


class Status(StrEnum):
    """Where a run stands. `running` is never stored: it means that a lease is in force."""

    PENDING = "pending"
    RUNNING = "running"
    SLEEPING = "sleeping"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"


LIVE = frozenset({Status.PENDING, Status.RUNNING, Status.SLEEPING, Status.WAITING})


class StepStatus(StrEnum):
    """Where a step stands."""

    PENDING = "pending"
    RUNNING = "running"
    RETRYING = "retrying"
    SLEEPING = "sleeping"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
